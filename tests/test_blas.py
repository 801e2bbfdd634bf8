"""Products of matrices run on one thread inside, and on as many as before afterwards."""

from threadpoolctl import threadpool_info, threadpool_limits

from ducos.blas import one_thread


def threads() -> set[int]:
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def test_one_thread_inside_and_what_was_before_behind() -> None:
    with threadpool_limits(2, "blas"):
        before = threads()
        with one_thread():
            assert threads() == {1}
            with one_thread():
                assert threads() == {1}
            assert threads() == {1}
        assert threads() == before
