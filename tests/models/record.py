#!/usr/bin/python3
"""Writes models.txt: small PyTorch models as the JSON that exporters write, and what PyTorch computes for them.

    apt-get install python3-torch && python3 tests/models/record.py        (torch 1.13; see README.md for the form)

The models are in models.py. Each is traced, so that every call is an ATen op with its schema, and
each call is written with its flat tensors and named attributes. Weights and inputs are made by a formula that the test
knows too; only results are recorded."""
import json, os
import torch
import models

HERE = os.path.dirname(os.path.abspath(__file__))
DTYPES = {torch.float32: "float32", torch.float64: "float64", torch.float16: "float16", torch.bfloat16: "bfloat16",
          torch.int8: "int8", torch.int16: "int16", torch.int32: "int32", torch.int64: "int64", torch.uint8: "uint8",
          torch.bool: "bool"}
CODES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64,
         None, None, None, torch.bool, None, None, None, torch.bfloat16]
FORMATS = ["torch.contiguous_format", "torch.preserve_format", "torch.channels_last", "torch.channels_last_3d"]


def numbers(count, seed):
    """count numbers of 16 bits"""
    i = torch.arange(count, dtype=torch.int64)
    return ((i * 2654435761 + seed * 40503 + 12345) % 2**32) >> 16


def fill(shape, dtype, seed, bound=0, scale=1.0):
    """floats in [-scale, scale), integers below bound, booleans"""
    count = 1
    for d in shape:
        count *= d
    n = numbers(count, seed).reshape(shape)
    if dtype == torch.bool:
        return n % 2 == 1
    if not dtype.is_floating_point:
        return (n % (bound or 100)).to(dtype)
    return ((n.to(torch.float32) / 32768 - 1) * torch.tensor(scale)).to(dtype)


def set_weights(net):
    """Names and seeds of what the model keeps, in order."""
    weights = []
    for seed, (name, t) in enumerate(net.state_dict().items()):
        scale = 0.3
        data = fill(t.shape, t.dtype, 1000 + seed, 7, scale)
        if name.endswith("running_var"):
            data = data.abs() + 0.5
        t.copy_(data)
        weights.append(name)
    return weights


class Exporter:
    def __init__(self, net, inputs, weights, rename):
        self.rename, self.names, self.nodes, self.constants, self.values = rename, {}, [], {}, {}
        traced = torch.jit.trace(net, tuple(i.clone() for i in inputs), check_trace=False)
        graph = traced.inlined_graph
        state = net.state_dict()
        self.state, self.used, self.inputs = state, {}, []
        args = list(graph.inputs())
        self.values[args[0].debugName()] = ("self", "")
        for i, (value, t) in enumerate(zip(args[1:], inputs)):
            self.values[value.debugName()] = ("tensor", "x%d" % i, "x%d" % i, 0, list(t.shape), DTYPES[t.dtype])
            self.inputs.append(self.meta("x%d" % i, list(t.shape), DTYPES[t.dtype]))
        for node in graph.nodes():
            self.node(node)
        outputs = []
        for value in graph.outputs():
            v = self.values[value.debugName()]
            outputs += v[1] if v[0] == "list" else [v]
        self.outputs = [self.meta(o[1], o[4], o[5]) for o in outputs]

    def meta(self, name, shape, dtype, producer=None, index=0):
        m = {"name": name, "shape": shape, "dtype": dtype}
        if producer:
            m.update(producer_node=producer, producer_output_idx=index)
        return m

    def unique(self, base):
        n = self.names.get(base, 0)
        self.names[base] = n + 1
        return base if n == 0 else "%s_%d" % (base, n)

    def python(self, v):
        """The Python value of a value that is no tensor."""
        if v[0] == "const":
            return v[1]
        if v[0] == "list":
            return [self.python(e) for e in v[1]]
        raise ValueError(v)

    def tensor_of(self, value, name, node, index):
        t = value.type()
        return ("tensor", name, node, index, list(t.sizes()), DTYPES[t.dtype()] if hasattr(t, "dtype") else "float32")

    def node(self, node):
        kind, ins, outs = node.kind(), [i.debugName() for i in node.inputs()], [o.debugName() for o in node.outputs()]
        if kind == "prim::GetAttr":
            base = self.values[ins[0]][1]
            path = (base + "." if base else "") + node.s("name")
            if path in self.state:
                t = self.state[path]
                placeholder = ("b_" if "running" in path or "buf" in path else "p_") + path.replace(".", "_")
                self.used[placeholder] = path
                self.values[outs[0]] = ("tensor", placeholder, None, 0, list(t.shape), DTYPES[t.dtype])
            else:
                self.values[outs[0]] = ("self", path)
        elif kind == "prim::Constant":
            v = node.output().toIValue() if not node.mustBeNone() else None
            if isinstance(v, torch.Tensor):
                name = "lifted_%d" % len(self.constants)
                self.constants[name] = {"data": v.tolist(), "dtype": DTYPES[v.dtype]}
                self.used["c_" + name] = name
                self.values[outs[0]] = ("tensor", "c_" + name, None, 0, list(v.shape), DTYPES[v.dtype])
            else:
                self.values[outs[0]] = ("const", v)
        elif kind in ("prim::ListConstruct", "prim::TupleConstruct"):
            self.values[outs[0]] = ("list", [self.values[i] for i in ins])
        elif kind in ("prim::ListUnpack", "prim::TupleUnpack"):
            source = self.values[ins[0]]
            if source[0] == "list":
                for o, v in zip(outs, source[1]):
                    self.values[o] = v
            else:
                metas = []
                for i, value in enumerate(node.outputs()):
                    v = self.tensor_of(value, "%s_%d" % (source[1], i), source[1], i)
                    self.values[value.debugName()] = v
                    metas.append(self.meta(v[1], v[4], v[5]))
                source[2]["outputs"] = metas
        elif kind in ("prim::NumToTensor", "aten::Int", "aten::ScalarImplicit") and self.values[ins[0]][0] == "const":
            self.values[outs[0]] = self.values[ins[0]]
        elif kind == "aten::size":
            self.values[outs[0]] = ("const", self.values[ins[0]][4][self.python(self.values[ins[1]])])
        else:
            self.call(node)

    def attribute(self, arg, v):
        if arg.name == "dtype" and isinstance(v, int):
            return "torch." + DTYPES[CODES[v]]
        if arg.name == "layout" and v is not None:
            return "torch.strided"
        if arg.name == "memory_format" and v is not None:
            return FORMATS[v]
        if arg.name == "device" and v is not None:
            return "meta"
        return v

    def convolution(self, values):
        """_convolution is what tracing leaves of conv1d .. conv_transpose3d."""
        x, w, b, stride, padding, dilation, transposed, output_padding, groups = values[:9]
        n = len(w[4]) - 2
        if "convolution" in self.rename:
            names = ["input", "weight", "bias", "stride", "padding", "dilation", "transposed", "output_padding",
                     "groups"]
            return "convolution.default", names, values[:9]
        if self.python(transposed):
            op = "conv_transpose%dd.%s" % (n, "default" if n == 1 else "input")
            names = ["input", "weight", "bias", "stride", "padding", "output_padding", "groups", "dilation"]
            return op, names, [x, w, b, stride, padding, output_padding, groups, dilation]
        names = ["input", "weight", "bias", "stride", "padding", "dilation", "groups"]
        return "conv%dd.default" % n, names, [x, w, b, stride, padding, dilation, groups]

    def call(self, node):
        schema = torch._C.parse_schema(node.schema())
        values = [self.values[i.debugName()] for i in node.inputs()]
        op, args = schema.name.split("::")[1] + "." + (schema.overload_name or "default"), list(schema.arguments)
        types = [str(a.type) for a in args]
        names = [a.name for a in args]
        defaults = [a.default_value if a.has_default_value() else Ellipsis for a in args]
        if op.startswith("_convolution."):
            op, names, values = self.convolution(values)
            types = ["Tensor", "Tensor", "Optional[Tensor]"] + ["int[]"] * 6
            defaults = [Ellipsis] * len(names)
            args = [type("Arg", (), {"name": n}) for n in names]
        inputs, attrs, sizes, masks, given = [], {}, [], [], []
        for arg, kind, default, v in zip(args, types, defaults, values):
            if "Tensor" in kind and v[0] == "list":
                tensors = [t for t in v[1] if t[0] == "tensor"]
                sizes.append(len(tensors))
                masks.append([t[0] != "tensor" for t in v[1]] if len(tensors) < len(v[1]) else [])
                inputs += tensors
            elif v[0] == "tensor":
                inputs.append(v)
                if "Optional" in kind:
                    given.append(True)
            elif "Tensor" in kind:
                if self.python(v) is not None:
                    attrs[arg.name] = self.python(v)
                given.append(False)
            elif default is Ellipsis or self.python(v) != default:
                attrs[arg.name] = self.attribute(arg, self.python(v))
        if sizes:
            attrs["_tensor_list_sizes"] = sizes
        if any(masks):
            attrs["_tensor_list_none_masks"] = masks
        if any(given) and not all(given) and "search" not in self.rename:
            attrs["_optional_tensor_mask"] = given
        op = self.rename.get(op, op)
        name = self.unique(op.split(".")[0])
        spelled = ["aten.%s" % op, "aten::%s" % op, "torch.ops.aten.%s" % op][len(self.nodes) % 3]
        record = {"name": name, "op_type": spelled, "inputs": [self.use(t) for t in inputs], "outputs": [],
                  "attrs": attrs}
        self.nodes.append(record)
        outs = list(node.outputs())
        if len(outs) == 1 and str(outs[0].type()).startswith("Tensor[") or str(outs[0].type()) == "List[Tensor]":
            self.values[outs[0].debugName()] = ("call", name, record)
            return
        for i, value in enumerate(outs):
            v = self.tensor_of(value, name if len(outs) == 1 else "%s_%d" % (name, i), name, i)
            self.values[value.debugName()] = v
            record["outputs"].append(self.meta(v[1], v[4], v[5]))

    def use(self, t):
        """Without shape and dtype, which the producer's record has: it halves the file."""
        return {"name": t[1], "producer_node": t[2], "producer_output_idx": t[3]} if t[2] else {"name": t[1]}

    def json(self, name):
        weights, seen = [], set()
        for placeholder, key in self.used.items():
            if key not in seen:
                seen.add(key)
                t = self.state.get(key)
                shape = list(t.shape) if t is not None else list(torch.tensor(self.constants[key]["data"]).shape)
                dtype = DTYPES[t.dtype] if t is not None else self.constants[key]["dtype"]
                weights.append(self.meta(key, shape, dtype))
        d = {"model_name": name, "pytorch_version": torch.__version__, "graph_inputs": self.inputs,
             "graph_outputs": self.outputs, "weights": weights, "weight_name_mapping": self.used, "nodes": self.nodes}
        if self.constants:
            d["constants"] = self.constants
        return d


def text(v):
    return "%.9g" % v if isinstance(v, float) else str(int(v))


def record(out, name, net, specs, category, tol, rename):
    net.eval() if not getattr(net, "train_mode", False) else net.train()
    with torch.no_grad():
        weights = set_weights(net)
        inputs = [fill(s[0], s[1], 1 + i, s[2] if len(s) > 2 else 0, 2.0) for i, s in enumerate(specs)]
        exported = Exporter(net, inputs, weights, rename)
        set_weights(net)  # tracing may have written to buffers
        results = net(*[i.clone() for i in inputs])
    flat = []
    for r in results if isinstance(results, (tuple, list)) else [results]:
        flat += r if isinstance(r, (tuple, list)) else [r]
    write(out, name, category, tol, exported.json(name), specs, weights, flat)


def write(out, name, category, tol, document, specs, weights, results):
    lines = json.dumps(document, separators=(",", ":"))
    out.write("model %s %s %g\n%s\n" % (name, category, tol, lines))
    for i, s in enumerate(specs):
        out.write("input x%d %d\n" % (i, s[2] if len(s) > 2 else 0))
    for w in weights:
        out.write("weight %s\n" % w)
    for r in results:
        values = r.flatten().tolist()
        assert len(values) <= 400, (name, len(values))
        out.write("out %d %s\n" % (len(values), " ".join(text(v) for v in values)))
    out.write("end\n")


def main():
    path = os.path.join(HERE, "models.txt")
    with open(path, "w") as out:
        for m in models.MODELS:
            try:
                record(out, *m)
            except Exception:
                print("in", m[0])
                raise
    print("%d models, %d bytes" % (len(models.MODELS), os.path.getsize(path)))


main()
