"""Vectors of the processor as values of compiled functions."""

from __future__ import annotations

import operator
from typing import Any, no_type_check

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

from .layout import VECTOR_BYTES


class Lanes(types.Type):
    """A vector of the processor, of numbers of one kind."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        scalar = ir.FloatType() if kind.dtype.bitwidth == 32 else ir.DoubleType()
        super().__init__(manager, kind, ir.VectorType(scalar, VECTOR_BYTES * 8 // kind.dtype.bitwidth))


def _arithmetic(symbol: Any, instruction: str) -> None:
    @infer_global(symbol)
    class _Typed(AbstractTemplate):
        @no_type_check
        def generic(self, args, kws):
            if len(args) == 2 and isinstance(args[0], Lanes) and args[0] == args[1]:
                return signature(args[0], *args)
            return None

    @lower_builtin(symbol, Lanes, Lanes)
    @no_type_check
    def _lowered(context, builder, sig, args):
        return getattr(builder, instruction)(*args, flags=["contract"])


for _symbol, _instruction in zip(["add", "sub", "mul", "truediv"], ["fadd", "fsub", "fmul", "fdiv"], strict=True):
    _arithmetic(getattr(operator, _symbol), _instruction)


@no_type_check
def _pointer(context, builder, array_type, array, index):
    """To the vector that starts at an index of a flat array."""
    data = cgutils.create_struct_proxy(array_type)(context, builder, array).data
    vector = context.get_value_type(Lanes(array_type.dtype))
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


@no_type_check
def everywhere(builder, vector, number):
    """A number in every lane."""
    lone = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), None)
    return builder.shuffle_vector(lone, ir.Constant(vector, ir.Undefined), zeros)


@intrinsic
@no_type_check
def load_lanes(_, w, index):
    """The vector at an index of ``w``."""

    def code(context, builder, sig, args):
        value = builder.load(_pointer(context, builder, sig.args[0], *args))
        value.align = w.dtype.bitwidth // 8
        return value

    return Lanes(w.dtype)(w, types.intp), code


@intrinsic
@no_type_check
def store(_, w, index, value):
    """Put a vector to an index of ``w``."""

    def code(context, builder, sig, args):
        place = _pointer(context, builder, sig.args[0], *args[:2])
        builder.store(args[2], place).align = w.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(w, types.intp, value), code


@intrinsic
@no_type_check
def filled_lanes(_, number):
    """A vector of one number."""

    def code(context, builder, sig, args):
        return everywhere(builder, context.get_value_type(sig.return_type), args[0])

    return Lanes(number)(number), code


@intrinsic
@no_type_check
def larger(_, a, b):
    """The larger of each pair; b where one is not a number."""

    def code(context, builder, sig, args):
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    return a(a, b), code


@intrinsic
@no_type_check
def root(_, a):
    """Square roots."""

    def code(context, builder, sig, args):
        vector = args[0].type
        name = f"llvm.sqrt.v{vector.count}f{a.dtype.bitwidth}"
        return builder.call(
            cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector]), name), args
        )

    return a(a), code
