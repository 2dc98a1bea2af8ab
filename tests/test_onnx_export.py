"""`mlc.onnx.export`: what is written passes ONNX's checker, runs under ONNX Runtime, and comes in again."""
from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.tools.fuzzing.interpreted import interpreted

onnx = pytest.importorskip("onnx")
from tests.peers import onnx_programs as programs  # noqa: E402


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_a_program_goes_out_and_comes_in(name: str) -> None:
    with interpreted():
        assert not programs.difference(name)


def test_a_symbolic_size_is_one_of_the_model() -> None:
    model = mlc.onnx.export(nn.Linear(3, 2), (mlc.ones(1, 3),), dynamic_shapes=({0: "batch"},))
    for n in (1, 5):
        out, = programs.outputs(model, [np.ones((n, 3), np.float32)])
        assert out.shape == (n, 2)
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"


def test_names_and_weights(tmp_path: Path) -> None:
    net, path = nn.Sequential(nn.Linear(3, 2), nn.ReLU()), tmp_path / "net.onnx"
    model = mlc.onnx.export(net, (mlc.ones(1, 3),), path, input_names=["features"], output_names=["scores"])
    assert {x.name for x in model.graph.initializer} == set(net.state_dict())
    assert [x.name for x in model.graph.input] == ["features"] and [x.name for x in model.graph.output] == ["scores"]
    x = np.array([[1, -2, 3]], np.float32)
    np.testing.assert_allclose(mlc.onnx.load(str(path))(x).numpy(), net(mlc.tensor(x)).numpy(), rtol=1e-5, atol=1e-6)


def test_large_weights_are_beside_the_model(tmp_path: Path) -> None:
    path, x = tmp_path / "net.onnx", np.ones((1, 64), np.float32)
    net = nn.Linear(64, 64)
    for _ in range(2):                                     # the file of the former weights goes away
        mlc.onnx.export(net, (x,), path, external_data=True)
        assert len(list(tmp_path.iterdir())) == 2 and path.stat().st_size < 2000
        found = mlc.onnx.load(str(path))(x).numpy()
        np.testing.assert_allclose(found, net(mlc.tensor(x)).numpy(), rtol=1e-5, atol=1e-6)
        net = nn.Linear(64, 64)


def test_a_module_in_training_gives_its_new_statistics() -> None:
    norm = nn.BatchNorm1d(2)
    model = mlc.onnx.export(norm, (mlc.ones(4, 2),))
    assert {"running_mean.new", "running_var.new"} <= {x.name for x in model.graph.output}


def test_what_has_no_counterpart_is_refused_and_the_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"the old model")
    for f, x in ((lambda x: mlc.bitcast(x, "int32"), mlc.ones(3)), (mlc.abs, mlc.tensor([1j]))):
        with pytest.raises(mlc.UserError) as error:
            mlc.onnx.export(f, (x,), path)
        assert error.value.code == "MLC0848", error.value
    assert path.read_bytes() == b"the old model"


def test_arguments_that_do_not_fit() -> None:
    x = mlc.ones(2, 3)
    for options in ({"opset_version": 7}, {"dynamic_shapes": ({5: "B"},)}, {"input_names": ["a", "b"]},
                    {"output_names": ["x"], "input_names": ["x"]}, {"dynamic_shapes": {"z": {0: "B"}}}):
        with pytest.raises(mlc.UserError) as error:
            mlc.onnx.export(mlc.relu, (x,), **options)
        assert error.value.code == "MLC0850", options


def test_a_file_object_is_written() -> None:
    file = io.BytesIO()
    mlc.onnx.export(mlc.relu, (mlc.ones(2),), file)
    assert onnx.load_model_from_string(file.getvalue()).graph.node[0].op_type == "Relu"


def test_the_command_takes_what_is_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from mlc.tools.cli import main
    path = str(tmp_path / "net.onnx")
    mlc.onnx.export(nn.Linear(3, 2), (mlc.ones(1, 3),), path, dynamic_shapes=({0: "B"},))
    assert main(["import", path]) == main(["compile", path, "--emit=tensor"]) == 0
    out = capfd.readouterr().out
    assert "weight: float32[2, 3]" in out and "tensor.dot_general" in out, out


def test_integers_of_8_bits_stay_integers() -> None:
    """A quantised convolution is ConvInteger, with the bits of mlc."""
    x = mlc.randn(1, 2, 5, 5, generator=mlc.Generator().manual_seed(0))
    small = mlc.quantization.quantize(nn.Conv2d(2, 3, 3, padding=1), [x])
    model = mlc.onnx.export(small, (x,))
    assert "ConvInteger" in {node.op_type for node in model.graph.node}
    out, = programs.outputs(model, [x.numpy()])
    np.testing.assert_array_equal(out, small(x).numpy())
