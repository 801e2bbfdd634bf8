"""The table of protocols says what is done, and its ids change whenever that changes."""

from dataclasses import replace

import pytest

from ducos.degrade import DEGRADATIONS, noise
from ducos.errors import InputError
from ducos.evaluation.protocols import PROTOCOLS, find

SYNTHETIC = PROTOCOLS["synthetic"]


def test_the_promised_protocols_are_there() -> None:
    promised = "synthetic synthetic-nocrop synthetic-gt-range arbitrary real noisy compressed"
    assert {*promised.split(), "compressed-as-released"} <= PROTOCOLS.keys()
    assert all(name == protocol.name for name, protocol in PROTOCOLS.items())


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_every_input_can_be_made(protocol) -> None:  # type: ignore[no-untyped-def]
    as_given = protocol.low == "as given"
    assert as_given or protocol.low in DEGRADATIONS
    assert as_given == (protocol.source == "sensor") == (protocol.scales == ())
    assert protocol.about.endswith(".")


def test_stated_constants_are_those_of_the_degradations() -> None:
    for name in ("noisy", "noisy-tofdsr", "noisy-dornet"):
        stated = PROTOCOLS[name].details
        assert f"blur {noise.BLUR:g} px, noise {noise.NOISE:g} of" in stated
    for name in ("compressed", "compressed-as-released", "compressed-as-released-nyu"):
        stated = PROTOCOLS[name].details
        assert f"last {noise.DROPPED_BITS} bits" in stated
        assert (
            f"noise {noise.RELATIVE_NOISE:g} × value + {noise.CONSTANT_NOISE:g} of the range"
            in stated
        )
    for name in ("noisy-tofdsr", "noisy-dornet"):
        metres, levels = noise.SENSOR_RANGE["m"], noise.SENSOR_RANGE["level"]
        assert f"{metres:g} m or {levels:g} levels" in PROTOCOLS[name].details


def test_ids_tell_protocols_apart() -> None:
    ids = [protocol.id for protocol in PROTOCOLS.values()]
    assert len(set(ids)) == len(ids)
    assert all(len(id) == 8 and int(id, 16) >= 0 for id in ids)
    assert SYNTHETIC.label == f"synthetic@{SYNTHETIC.id}"


@pytest.mark.parametrize(
    "change",
    [
        {"border": 0},
        {"modcrop": 1},
        {"normalisation": "target"},
        {"low": "nearest"},
        {"details": "otherwise"},
        {"source": "any"},
        {"seed": 1},
    ],
    ids=str,
)
def test_the_id_changes_with_whatever_changes_figures(change: dict) -> None:
    assert replace(SYNTHETIC, **change).id != SYNTHETIC.id


def test_the_id_stays_when_only_words_change() -> None:
    assert replace(SYNTHETIC, name="x", about="y", scales=(2.0,)).id == SYNTHETIC.id


def test_the_card_tells_everything() -> None:
    card = SYNTHETIC.card()
    assert card["id"] == SYNTHETIC.id
    assert card["border"] == 6
    assert card["averaging"] == "per image"
    assert card["normalisation"] == "low"
    assert PROTOCOLS["synthetic-gt-range"].card()["normalisation"] == "target"


def test_images_are_cut_to_multiples_of_the_scale() -> None:
    assert SYNTHETIC.cut((370, 427), 4.0) == (368, 424)
    assert SYNTHETIC.cut((370, 427), 8.0) == (368, 424)
    assert SYNTHETIC.cut((370, 427), 16.0) == (368, 416)
    assert PROTOCOLS["arbitrary"].cut((370, 427), 3.4) == (370, 427)
    assert PROTOCOLS["real"].cut((370, 427), None) == (370, 427)
    assert replace(SYNTHETIC, modcrop=16).cut((370, 427), 4.0) == (368, 416)
    with pytest.raises(InputError, match="too small"):
        SYNTHETIC.cut((10, 427), 16.0)


def test_the_border_is_dropped_on_every_side() -> None:
    assert SYNTHETIC.scored((20, 30)) == (slice(6, 14), slice(6, 24))
    assert PROTOCOLS["synthetic-nocrop"].scored((20, 30)) == (slice(0, 20), slice(0, 30))
    with pytest.raises(InputError, match="nothing left"):
        SYNTHETIC.scored((12, 30))


def test_scales() -> None:
    assert SYNTHETIC.checked_scales(()) == (4, 8, 16)
    assert SYNTHETIC.checked_scales((2.0, 2.0, 3.0)) == (2, 3)
    assert PROTOCOLS["arbitrary"].checked_scales(()) == (1.5, 2.7, 3.4, 5.3, 11.6)
    assert PROTOCOLS["real"].checked_scales((4.0,)) == (None,)
    with pytest.raises(InputError, match="use the protocol `arbitrary`"):
        SYNTHETIC.checked_scales((2.5,))
    for wrong in (0.5, -4.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="1 or more"):
            PROTOCOLS["arbitrary"].checked_scales((wrong,))


def test_an_unknown_name_gets_the_list() -> None:
    with pytest.raises(InputError, match=r"'synthetc'.*synthetic, synthetic-nocrop"):
        find("synthetc")
