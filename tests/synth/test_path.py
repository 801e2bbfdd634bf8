"""A camera on a path: what `ducos synth --path` renders along."""

import numpy as np

from ducos.synth.camera import Camera, develop, look_at, path_from
from ducos.synth.worker import view_id


def test_a_hand_held_camera_drifts_by_millimetres_and_turns_along() -> None:
    start = Camera(look_at(np.array([0.0, -2, 1]), np.array([0.0, 0, 1])), 1.0)
    path = path_from(np.random.default_rng(0), start, 20)
    assert np.allclose(path[0].pose, start.pose)
    places = np.array([camera.pose[:3, 3] for camera in path])
    steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
    assert 0.005 < steps.min() < steps.max() < 0.03
    for camera in path:
        assert np.allclose(camera.pose[:3, :3] @ camera.pose[:3, :3].T, np.eye(3))
    side = np.sign((places[-1] - places[0])[0])
    assert np.sign(-path[-1].pose[0, 2]) == side  # it turns the way it drifts


def test_frames_of_a_path_differ_in_noise_only_and_sort_in_order() -> None:
    light = np.full((24, 32, 3), 0.2, np.float32)
    frames = [
        develop(light, np.random.default_rng(1), np.random.default_rng(n)).astype(float)
        for n in (2, 3)
    ]
    assert np.abs(frames[0] - frames[1]).max() > 0
    assert abs(frames[0].mean() - frames[1].mean()) < 2
    assert view_id(7, 2, True) < view_id(7, 10, True)
