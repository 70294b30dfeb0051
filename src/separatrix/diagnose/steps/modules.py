"""Recurrent networks of a module: torch's own by their weights and a probe, others by being called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from separatrix.core import InvalidInput, spawn

from ..model_call import call_model, without_trace
from .called import CalledMap, in_double, probed
from .called_step import features, network_of_step
from .network import RecurrentNetwork, run
from .packing import Packing, State
from .state_dicts import networks_of_state

TORCH = (nn.RNN, nn.GRU, nn.LSTM, nn.RNNCell, nn.GRUCell, nn.LSTMCell)


def networks_of_module(
    module: nn.Module, inputs: object, state: State | None, *, whole: bool = True
) -> list[RecurrentNetwork]:
    """Its recurrent networks: itself if it is one of torch's or has a step, else those of torch inside it."""
    if _is_torch(module):
        return [_of_torch(module, "")]
    step = getattr(module, "step", None)
    if callable(step):
        return [network_of_step(_bound(in_double(module)), inputs, state, f"{type(module).__name__}.step")]
    inside = {name: part for name, part in module.named_modules() if _is_torch(part)}
    if inside:
        return _inside(module, inside, inputs if whole else None)
    if (found := _of_convention(module, inputs)) is not None:
        return [found]
    return [network_of_step(in_double(module), inputs, state, type(module).__name__)]


def _is_torch(module: nn.Module) -> bool:
    """One of torch's own, not a class made of it; parametrised weights make a class of their own."""
    own = type(module).__mro__[1] if parametrize.is_parametrized(module) else type(module)
    return own in TORCH


def _bound(module: nn.Module) -> Callable[[Tensor, Any], Any]:
    step: Callable[[Tensor, Any], Any] = module.step  # type: ignore[assignment]
    return step


def _of_torch(module: nn.Module, name: str, captured: Tensor | None = None) -> RecurrentNetwork:
    """By its weights; the module's own answer must agree with what was read."""
    told = {str(getattr(module, word, "")).upper() for word in ("nonlinearity", "mode")}
    nonlinearity: Any = "relu" if told & {"RELU", "RNN_RELU"} else "tanh"
    parameters = {key: tensor.detach() for key, tensor in module.state_dict().items() if "parametrizations" not in key}
    parameters |= _parametrised(module)
    (found,) = networks_of_state(parameters, nonlinearity, told=True)
    levels = tuple(tuple(_named(layer, name) for layer in level) for level in found.levels)
    is_cell = isinstance(module, nn.RNNCellBase)
    batch_first = True if is_cell else bool(getattr(module, "batch_first", True))
    network = RecurrentNetwork(name, levels, batch_first, captured)
    _require_agreement(module, network, is_cell=is_cell)
    return network


def _parametrised(module: nn.Module) -> dict[str, Tensor]:
    """Weights that a parametrisation computes, as they are."""
    known = getattr(module, "parametrizations", {})
    return {key: getattr(module, key).detach() for key in known}


def _named(layer: Any, prefix: str) -> Any:
    if prefix:
        layer.name = f"{prefix}.{layer.name}" if layer.name else prefix
    return layer


def _require_agreement(module: nn.Module, network: RecurrentNetwork, *, is_cell: bool) -> None:
    """A hook or a changed forward would make the weights tell another story than the module."""
    x = torch.randn(2, 3, network.input_size, generator=spawn(0, "diagnose", "agreement"), dtype=torch.float64)
    own = in_double(module)
    with torch.no_grad():
        if is_cell:
            state = own(x[:, 0])
            theirs = state[0] if isinstance(state, tuple) else state
            ours = run(network.levels[0][0], x[:, :1])[:, -1, : theirs.shape[-1]]
        else:
            theirs = own(x if network.batch_first else x.transpose(0, 1))[0]
            theirs = theirs if network.batch_first else theirs.transpose(0, 1)
            below = RecurrentNetwork(network.name, (*network.levels, network.levels[-1]), True)
            ours = below.fed(x)[-1]
    if not torch.allclose(ours, theirs, rtol=1e-9, atol=1e-9):
        raise InvalidInput(
            f"{network.name or type(module).__name__} does not compute what its weights say (a hook, or a changed "
            "forward); pass a function step(x, state) that calls it."
        )


def _inside(model: nn.Module, inside: dict[str, nn.Module], inputs: object) -> list[RecurrentNetwork]:
    """Torch's networks inside a model, with what entered them when the model was run on the inputs."""
    seen: dict[str, list[Tensor]] = {name: [] for name in inside}
    hooks = [
        part.register_forward_pre_hook(lambda _, args, name=name: seen[name].append(args[0]))
        for name, part in inside.items()
    ]
    try:
        if inputs is not None and not isinstance(inputs, str):
            with torch.no_grad(), without_trace(model):
                call_model(model, inputs)
    except Exception as error:
        raise InvalidInput(
            f"inputs must be what {type(model).__name__} itself takes, since the networks inside it are shown what "
            f"reaches them; it failed ({type(error).__name__}: {error})."
        ) from error
    finally:
        for hook in hooks:
            hook.remove()
    return [_of_torch(part, name, _captured(part, seen[name])) for name, part in inside.items()]


def _captured(part: nn.Module, calls: list[Any]) -> Tensor | None:
    """Sequences from the calls of a layer (the first call) or of a cell (one call a step)."""
    if not calls or not all(isinstance(call, Tensor) for call in calls):
        return None  # packed sequences have no common length
    if isinstance(part, nn.RNNCellBase):
        shapes = {tuple(call.shape) for call in calls}
        whole = torch.stack(calls, dim=-2) if len(shapes) == 1 else None
    else:
        whole = calls[0]
        whole = whole if whole.ndim == 2 or getattr(part, "batch_first", False) else whole.transpose(0, 1)
    if whole is None:
        return None
    return (whole if whole.ndim == 3 else whole.unsqueeze(0)).detach().double().cpu()


def _of_convention(module: nn.Module, inputs: object) -> RecurrentNetwork | None:
    """A module called as torch's, ``output, h_n = module(x, h_0)``, asked one step at a time; None if it is none."""
    own, size = in_double(module), features(inputs, type(module).__name__)
    batch_first = bool(getattr(module, "batch_first", True))
    time_axis = 1 if batch_first else 0
    x = torch.randn(2, 2, size, generator=spawn(0, "diagnose", "convention"), dtype=torch.float64)
    try:
        with torch.no_grad():
            answer = own(x)
            if not (isinstance(answer, tuple) and len(answer) == 2):  # a tensor of two samples would come apart too
                return None
            last, first = answer[1], x.narrow(time_axis, 0, 1)
            _, middle = own(first)
            _, again = own(x.narrow(time_axis, 1, 1), middle)
    except Exception:  # it is something else, which the caller tries next
        return None
    packing = Packing.of(last, 1, "h_n")
    if not torch.allclose(packing.pack(last), packing.pack(again), rtol=1e-9, atol=1e-9):
        raise InvalidInput(
            f"{type(module).__name__} must carry all it knows in its state; two steps one by one end elsewhere than "
            "two steps at once."
        )

    def step(now: Tensor, state: State) -> State:
        return own(now.unsqueeze(time_axis), state)[1]

    name = type(module).__name__
    found = CalledMap(name, step, packing, size, torch.float64, blocks=_offered(own, packing.size), kind=name)
    return RecurrentNetwork("", ((probed(found),),), batch_first)


def _offered(module: nn.Module, size: int) -> dict[str, Tensor]:
    """The matrix that a module itself calls recurrent, if it is square; complex ones are allowed."""
    method = getattr(module, "recurrent", None)
    if not callable(method):
        return {}
    try:
        with torch.no_grad():
            matrix = method()
    except Exception:  # a method of that name that wants something else
        return {}
    fits = isinstance(matrix, Tensor) and matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
    return {"recurrent()": matrix.detach()} if fits and matrix.shape[0] in (size, size // 2) else {}
