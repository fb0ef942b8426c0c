"""Writes OUT.json .. of a model with control flow as torch.export of torch 2.x traces it: torch.cond and while_loop are
nodes that call torch.ops.higher_order.cond and while_loop, with submodules as their graphs. Its nodes are made by hand,
since older versions have none; OUT.other.input0.npy .. is an input that takes the other branch.

    python3 tests/models/flow.py OUT"""
import os, sys
import numpy
import torch
from torch.fx import Graph, GraphModule
from operator import getitem
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/pytorch"))
import export

ATEN = torch.ops.aten


class HigherOrder:
    """What torch.ops.higher_order has."""
    __module__ = "torch.ops.higher_order"

    def __init__(self, name):
        self.__name__ = self.__qualname__ = name

    def __call__(self, *args):
        raise NotImplementedError


def submodule(count, build, **buffers):
    graph, root = Graph(), torch.nn.Module()
    for name, tensor in buffers.items():
        root.register_buffer(name, tensor)
    graph.output(build(graph, *[graph.placeholder("arg%d_1" % i) for i in range(count)]))
    return GraphModule(root, graph)


def add_bias(g, x, w):
    product = g.call_function(ATEN.mm.default, (x, w))
    return g.call_function(ATEN.add.Tensor, (product, g.get_attr("_tensor_constant0"))), x


def turn(g, i, x, w):
    product = g.call_function(ATEN.mm.default, (x, w))
    return g.call_function(ATEN.add.Tensor, (i, 1)), g.call_function(ATEN.tanh.default, (product,))


def model():
    """y, z = cond(sum(x) > 0, (x W, -x), (x W + b, x)); then y = tanh(y W), four times."""
    root, g = torch.nn.Module(), Graph()
    root.true_graph_0 = submodule(2, lambda g, x, w: (g.call_function(ATEN.mm.default, (x, w)),
                                                      g.call_function(ATEN.neg.default, (x,))))
    root.false_graph_0 = submodule(2, add_bias, _tensor_constant0=torch.tensor([1.0, 2.0, 3.0]))
    root.while_loop_cond_graph_0 = submodule(3, lambda g, i, x, w: g.call_function(ATEN.lt.Scalar, (i, 5)))
    root.while_loop_body_graph_0 = submodule(3, turn)
    w, begin, x = g.placeholder("p_w"), g.placeholder("b_begin"), g.placeholder("x")
    positive = g.call_function(ATEN.gt.Scalar, (g.call_function(ATEN.sum.default, (x,)), 0))
    graphs = g.get_attr("true_graph_0"), g.get_attr("false_graph_0")
    both = g.call_function(HigherOrder("cond"), (positive, *graphs, [x, w]))
    y, z = g.call_function(getitem, (both, 0)), g.call_function(getitem, (both, 1))
    graphs = g.get_attr("while_loop_cond_graph_0"), g.get_attr("while_loop_body_graph_0")
    loop = g.call_function(HigherOrder("while_loop"), (*graphs, (begin, y), (w,)))
    g.output((g.call_function(getitem, (loop, 1)), z, g.call_function(getitem, (loop, 0))))
    return GraphModule(root, g), {w: ("weight", "w"), begin: ("weight", "begin"), x: ("input", "x")}


def main(out):
    torch.manual_seed(0)
    module, kinds = model()
    state = {"w": torch.randn(3, 3), "begin": torch.tensor(1)}
    x = torch.rand(2, 3)
    for path, value in ((out, x), (out + ".other", -x)):
        results = export.ShapesOf(module).run(state["w"], state["begin"], value)
        numpy.save(path + ".input0.npy", value.numpy())
        for i, tensor in enumerate(results):
            numpy.save("%s.output%d.npy" % (path, i), tensor.numpy())
    document = export.Document(module, kinds, state, None)
    with open(out + ".json", "w") as file:
        export.json.dump(document.json("flow"), file, indent=1)
    export.write_safetensors(out + ".safetensors", document.state, document.used)


main(sys.argv[1])
