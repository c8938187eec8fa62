"""Cost models of single operators: each takes the parsed inputs and the recorded values and returns a `Cost`.

A call that does not look as expected makes them raise; `op_costs.operator_cost` takes that for "not modelled".
"""

import math
from typing import Any

from gptscope.profiling.trace.op_inputs import (
    ITEM_BYTES,
    Cost,
    Inputs,
    Tensor,
    all_tensors,
    list_at,
    optional_bytes,
    tensor_at,
)

_PROMOTION = (
    "bool", "unsigned char", "signed char", "short", "short int", "int", "long", "long int",
    "c10::Half", "c10::BFloat16", "float", "double",
)  # fmt: skip


def _product(a: Tensor, b: Tensor, bias_bytes: int, out_item: int | None = None) -> Cost:
    """[..., M, K] times [..., K, N]."""
    if a.dims[-1] != b.dims[-2]:
        raise ValueError("inner sizes differ")
    batch = math.prod(a.dims[:-2]) if len(a.dims) >= len(b.dims) else math.prod(b.dims[:-2])
    m, k, n = a.dims[-2], a.dims[-1], b.dims[-1]
    out = batch * m * n * (out_item or a.item)
    return Cost(a.bytes + b.bytes + bias_bytes + out, 2 * batch * m * k * n)


def mm(inputs: Inputs, _: list[Any]) -> Cost:
    """[M, K] times [K, N], or the same for a batch of matrices."""
    return _product(tensor_at(inputs, 0), tensor_at(inputs, 1), 0)


def int_mm(inputs: Inputs, _: list[Any]) -> Cost:
    """INT8 matrices; the result is INT32."""
    return _product(tensor_at(inputs, 0), tensor_at(inputs, 1), 0, out_item=4)


def scaled_int_mm(inputs: Inputs, values: list[Any]) -> Cost:
    """(a, scale, zero point, b, scales of b's columns, ...): INT8 matrices; the tenth value is the result's type."""
    out_item = {"6": 4, "15": 2, "5": 2, "0": 1, "1": 1}[values[9]]
    return _product(tensor_at(inputs, 0), tensor_at(inputs, 3), tensor_at(inputs, 4).bytes, out_item)


def addmm(inputs: Inputs, _: list[Any]) -> Cost:
    """(bias, a, b): product plus bias."""
    return _product(tensor_at(inputs, 1), tensor_at(inputs, 2), tensor_at(inputs, 0).bytes)


def _matrix_times_vector(matrix: Tensor, vector: Tensor, added_bytes: int) -> Cost:
    """[M, K] times [K]."""
    m, k = matrix.dims
    if tuple(vector.dims) != (k,):
        raise ValueError("inner sizes differ")
    return Cost(matrix.bytes + vector.bytes + added_bytes + m * matrix.item, 2 * m * k)


def mv(inputs: Inputs, _: list[Any]) -> Cost:
    """(matrix, vector)."""
    return _matrix_times_vector(tensor_at(inputs, 0), tensor_at(inputs, 1), 0)


def addmv(inputs: Inputs, values: list[Any]) -> Cost:
    """(added, matrix, vector, beta, alpha); with beta 0, as `torch.mv` calls it, the first is only written."""
    unread = len(values) > 3 and values[3] == "0"
    added_bytes = 0 if unread else tensor_at(inputs, 0).bytes
    return _matrix_times_vector(tensor_at(inputs, 1), tensor_at(inputs, 2), added_bytes)


def _rows_times_matrix(x: Tensor, w: Tensor, bias_bytes: int) -> Cost:
    """[..., K] times the transpose of [N, K]."""
    n, k = w.dims
    if x.dims[-1] != k:
        raise ValueError("inner sizes differ")
    rows = x.count // k
    return Cost(x.bytes + w.bytes + bias_bytes + rows * n * x.item, 2 * rows * k * n)


def linear(inputs: Inputs, _: list[Any]) -> Cost:
    """(input, weight [N, K], bias or nothing)."""
    return _rows_times_matrix(tensor_at(inputs, 0), tensor_at(inputs, 1), optional_bytes(inputs, 2))


def mkl_linear(inputs: Inputs, _: list[Any]) -> Cost:
    """(input, packed weight, weight, bias or nothing, batch)."""
    # (input, packed weight, weight, bias, batch): the packed copy is what is read; its size is the weight's.
    return _rows_times_matrix(tensor_at(inputs, 0), tensor_at(inputs, 2), optional_bytes(inputs, 3))


def matmul(inputs: Inputs, _: list[Any]) -> Cost:
    """Matrices with any leading sizes; a matrix on the right is shared by all of them."""
    a, b = tensor_at(inputs, 0), tensor_at(inputs, 1)
    if len(b.dims) == 2 and len(a.dims) != 2:
        k, n = b.dims
        rows = a.count // k
        return Cost(a.bytes + b.bytes + rows * n * a.item, 2 * rows * k * n)
    return _product(a, b, 0)


def sdpa(inputs: Inputs, _: list[Any]) -> Cost:
    """Queries [B, H, L, C], keys [B, K, S, C], values [B, K, S, E]: scores and weighted sum."""
    q, k, v = tensor_at(inputs, 0), tensor_at(inputs, 1), tensor_at(inputs, 2)
    b, h, length, c = q.dims
    attended, e = k.dims[-2], v.dims[-1]
    moved = q.bytes + k.bytes + v.bytes + b * h * length * e * q.item
    return Cost(moved, 2 * b * h * length * attended * (c + e))


def sdpa_masked(inputs: Inputs, values: list[Any]) -> Cost:
    """Attention that may read a mask too."""
    cost = sdpa(inputs, values)
    masks = [one for one in inputs[3:] if isinstance(one, Tensor) and len(one.dims) >= 2]
    return Cost((cost.bytes or 0) + sum(m.bytes for m in masks[:1]), cost.flops)


def sdpa_backward(inputs: Inputs, _: list[Any]) -> Cost:
    """Gradient in, q, k, v and the output read; three gradients written. Five products: the scores once more."""
    grad, q, k, v, out = (tensor_at(inputs, i) for i in range(5))
    b, h, length, c = q.dims
    attended, e = k.dims[-2], v.dims[-1]
    moved = grad.bytes + out.bytes + 2 * (q.bytes + k.bytes + v.bytes)
    return Cost(moved, 2 * b * h * length * attended * (3 * c + 2 * e))


def layer_norm(inputs: Inputs, _: list[Any]) -> Cost:
    """(input, sizes, scale, shift) or (input, sizes, scale): input read, as much written."""
    x = tensor_at(inputs, 0)
    return Cost(2 * x.bytes + sum(t.bytes for t in all_tensors(inputs[1:])), None)


def layer_norm_backward(inputs: Inputs, _: list[Any]) -> Cost:
    """(gradient, input, sizes, statistics, scale, shift): all read; gradients written."""
    tensors = all_tensors(inputs)
    x = tensor_at(inputs, 1)
    small = sum(t.bytes for t in tensors if len(t.dims) == 1)  # weight and bias: read, and their gradients written
    return Cost(sum(t.bytes for t in tensors) + x.bytes + small, None)


def same_size_output(inputs: Inputs, _: list[Any]) -> Cost:
    """Softmax and the like: all tensors read, one of the first one's size written."""
    return Cost(sum(t.bytes for t in all_tensors(inputs)) + tensor_at(inputs, 0).bytes, None)


def elementwise(inputs: Inputs, _: list[Any]) -> Cost:
    """All inputs read, one output of the broadcast size written."""
    tensors = all_tensors(inputs)
    return Cost(sum(t.bytes for t in tensors) + _broadcast_count(tensors) * ITEM_BYTES[_promoted(tensors)], None)


def in_place(inputs: Inputs, _: list[Any]) -> Cost:
    """All inputs read, the first one written."""
    return Cost(sum(t.bytes for t in all_tensors(inputs)) + tensor_at(inputs, 0).bytes, None)


def comparison(inputs: Inputs, _: list[Any]) -> Cost:
    """All inputs read, one byte per element written."""
    tensors = all_tensors(inputs)
    return Cost(sum(t.bytes for t in tensors) + _broadcast_count(tensors), None)


def _broadcast_count(tensors: list[Tensor]) -> int:
    rank = max(len(t.dims) for t in tensors)
    padded = [(1,) * (rank - len(t.dims)) + t.dims for t in tensors]
    return math.prod(max(sizes) if 0 not in sizes else 0 for sizes in zip(*padded, strict=True))


def _promoted(tensors: list[Tensor]) -> str:
    """Type of the result: tensors with dimensions decide; plain numbers only among themselves."""
    deciding = [t for t in tensors if t.dims] or tensors
    kinds = {t.dtype for t in deciding}
    if kinds == {"c10::Half", "c10::BFloat16"}:
        return "float"
    return max(kinds, key=_PROMOTION.index)


def where(inputs: Inputs, _: list[Any]) -> Cost:
    """(condition, a, b): all read, a result of the values' type written."""
    tensors = all_tensors(inputs)
    return Cost(
        sum(t.bytes for t in tensors) + _broadcast_count(tensors) * ITEM_BYTES[_promoted(tensors[1:] or tensors)], None
    )


def copy(inputs: Inputs, _: list[Any]) -> Cost:
    """(destination, source): source read, destination written."""
    return Cost(tensor_at(inputs, 0).bytes + tensor_at(inputs, 1).bytes, None)


def fill(inputs: Inputs, _: list[Any]) -> Cost:
    """(destination, value): destination written."""
    return Cost(tensor_at(inputs, 0).bytes, None)


def cat(inputs: Inputs, _: list[Any]) -> Cost:
    """(tensors, dimension): all read, as much written."""
    return Cost(2 * sum(t.bytes for t in list_at(inputs, 0)), None)


def reduction(inputs: Inputs, values: list[Any]) -> Cost:
    """Input read; the output has the sizes of the dimensions that stay."""
    x = tensor_at(inputs, 0)
    out = x.count
    if len(inputs) == 1 or values[1] in {"", "[]"}:
        out = 1
    else:
        for dim in {int(d) % len(x.dims) for d in str(values[1]).strip("[]").split(",")}:
            out //= max(x.dims[dim], 1)
    return Cost(x.bytes + out * x.item, None)


def embedding(inputs: Inputs, _: list[Any]) -> Cost:
    """(table, indices): the picked rows read and written."""
    table, index = tensor_at(inputs, 0), tensor_at(inputs, 1)
    return Cost(index.bytes + 2 * index.count * table.dims[-1] * table.item, None)


def embedding_backward(inputs: Inputs, values: list[Any]) -> Cost:
    """(gradient, indices, rows of the table): a gradient as large as the table written."""
    grad, index = tensor_at(inputs, 0), tensor_at(inputs, 1)
    return Cost(grad.bytes + index.bytes + int(values[2]) * grad.dims[-1] * grad.item, None)


def index_select(inputs: Inputs, values: list[Any]) -> Cost:
    """(source, dimension, indices): the picked slices read and written."""
    x, index = tensor_at(inputs, 0), tensor_at(inputs, 2)
    picked = x.count // max(x.dims[int(values[1])], 1) * index.count
    return Cost(index.bytes + 2 * picked * x.item, None)


def index_copy(inputs: Inputs, _: list[Any]) -> Cost:
    """(destination, dimension, indices, source): source read and written."""
    return Cost(optional_bytes(inputs, 2) + 2 * tensor_at(inputs, 3).bytes, None)


def fused_adam(inputs: Inputs, _: list[Any]) -> Cost:
    """Parameters, gradients and both moments read; parameters and moments written."""
    reads = [sum(t.bytes for t in list_at(inputs, i)) for i in range(4)]
    return Cost(sum(reads) + reads[0] + reads[2] + reads[3], None)
