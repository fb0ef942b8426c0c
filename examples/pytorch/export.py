#!/usr/bin/env python3
"""Writes a PyTorch model as files that npu_run and npu_graph_parse_json read.

    python3 export.py torchvision.models:resnet18 --input 1x3x224x224 -o resnet18
    python3 export.py my_net.py:make --input 2x16:int64 --input 2x16x8 --check -o net
    python3 export.py model.pt2 --input 1x3x224x224 -o model          (torch 2.x)

writes NAME.json (the graph), NAME.safetensors (the weights) and with --check NAME.input0.npy .., NAME.output0.npy ..: what
PyTorch computes. Then

    npu_run NAME.json NAME.safetensors --input NAME.input0.npy --verify NAME.output0.npy

MODEL is MODULE:NAME, or FILE.py:NAME, of a module or of what makes one. An input is its sizes, with :dtype behind where that is
not float32, or a .npy file. torch.export traces where it is there (torch 2.x), make_fx else (torch 1.13): both give
ATen ops with their schemas. Weights that modules share are written once. A buffer that forward changes is one more
output of the graph, NAME.new, for the caller to give back."""
import argparse, importlib, importlib.util, inspect, json, operator, os, struct, sys
import numpy
import torch

DTYPES = {torch.float32: ("float32", "F32"), torch.float64: ("float64", "F64"), torch.float16: ("float16", "F16"),
          torch.bfloat16: ("bfloat16", "BF16"), torch.int8: ("int8", "I8"), torch.int16: ("int16", "I16"),
          torch.int32: ("int32", "I32"), torch.int64: ("int64", "I64"), torch.uint8: ("uint8", "U8"), torch.bool: ("bool", "BOOL"),
          torch.complex64: ("complex64", "C64")}
MISSING = object()


def fail(message):
    sys.exit("export.py: " + message)


# ---- what the command line names ------------------------------------------------------------------------------------

def load_module(name):
    if not name.endswith(".py"):
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location("exported", name)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(name)))
    spec.loader.exec_module(module)
    return module


def load_model(text):
    """MODULE:NAME of a module, or of a function that makes one."""
    if ":" not in text:
        fail("%s: expected MODULE:NAME, FILE.py:NAME or FILE.pt2" % text)
    module, name = text.rsplit(":", 1)
    try:
        sys.path.insert(0, os.getcwd())
        thing = operator.attrgetter(name)(load_module(module))
    except (ImportError, AttributeError, OSError) as error:
        fail("%s: %s" % (text, error))
    net = thing if isinstance(thing, torch.nn.Module) else thing()
    if not isinstance(net, torch.nn.Module):
        fail("%s is no torch.nn.Module and makes none" % text)
    return net.eval()


def make_input(text):
    """1x3x8x8, 2x5:int64, or a .npy file. Floats are normal, integers 0 or 1: small enough for any embedding."""
    if text.endswith(".npy"):
        return torch.from_numpy(numpy.load(text))
    sizes, _, name = text.partition(":")
    dtype = getattr(torch, name or "float32", None)
    try:
        dims = [int(d) for d in sizes.split("x") if d]
    except ValueError:
        dims = None
    if not isinstance(dtype, torch.dtype) or dims is None:
        fail("--input %s: expected sizes such as 1x3x224x224, with :dtype behind, or a .npy file" % text)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(dims, dtype=torch.float32 if dtype.is_floating_point else dtype).to(dtype)
    return torch.randint(0, 2, dims).to(dtype)


# ---- tracing: a graph of ATen calls, and what its placeholders are ---------------------------------------------------

class Where:
    """The module that runs, for messages."""

    def __init__(self, net):
        self.stack, self.handles, self.failed = [], [], None
        for name, module in net.named_modules():
            label = "%s (%s)" % (name or "the model", type(module).__name__)
            self.handles.append(module.register_forward_pre_hook(lambda m, x, label=label: self.stack.append(label)))
            self.handles.append(module.register_forward_hook(lambda m, x, y: self.stack.pop() and None))

    def remove(self):
        for handle in self.handles:
            handle.remove()


def unique_state(net):
    """Parameters and buffers under all their names, and the first name of each."""
    state, names, first = {}, {}, {}
    for prefix, module in net.named_modules(remove_duplicate=False):
        for own in (module._parameters, module._buffers):
            for key, tensor in own.items():
                if tensor is not None:
                    name = prefix + "." + key if prefix else key
                    state[name] = tensor
                    names[name] = first.setdefault(id(tensor), name)
    return state, names


class PlainAttention:
    """While it is traced, attention is made of ops: the fused ones of evaluation mode are for PyTorch's own kernels."""

    def __init__(self, net):
        kinds = (torch.nn.TransformerEncoderLayer, torch.nn.MultiheadAttention)
        self.modules = [(m, m.training, getattr(m, "dropout", None)) for m in net.modules() if isinstance(m, kinds)]

    def __enter__(self):
        for module, _, dropout in self.modules:
            module.training = True # of this module alone: its dropout layers stay as they are
            if isinstance(dropout, float):
                module.dropout = 0.0

    def __exit__(self, *error):
        for module, training, dropout in self.modules:
            module.training = training
            if isinstance(dropout, float):
                module.dropout = dropout


def trace_make_fx(net, inputs):
    """torch 1.13: parameters become arguments, so that they are placeholders of the graph."""
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.nn.utils.stateless import functional_call
    state, names = unique_state(net)
    keys = [k for k in state if names[k] == k]
    before = {k: state[k].detach().clone() for k in keys} # tracing runs the model, which may write to them

    def call(weights, *args):
        return functional_call(net, {k: weights[names[k]] for k in state}, args)

    with torch.no_grad(), PlainAttention(net):
        module = make_fx(call)({k: before[k].clone() for k in keys}, *[x.clone() for x in inputs])
        ShapesOf(module).run({k: before[k].clone() for k in keys}, *[x.clone() for x in inputs])
    holders = [n for n in module.graph.nodes if n.op == "placeholder"]
    kinds = {n: ("weight", k) for n, k in zip(holders, keys)}
    for node, name in zip(holders[len(keys):], argument_names(net, len(inputs))):
        kinds[node] = ("input", name)
    return module, kinds, before, None


class ShapesOf(torch.fx.Interpreter):
    """Runs a graph once and keeps what each node gives, as dtype and shape."""

    def run_node(self, node):
        value = super().run_node(node)
        node.meta["val"] = value if not isinstance(value, torch.Tensor) else torch.empty_like(value, device="meta")
        if isinstance(value, (tuple, list)):
            node.meta["val"] = [torch.empty_like(v, device="meta") if isinstance(v, torch.Tensor) else v for v in value]
        return value


def argument_names(net, count):
    names = [p.name for p in inspect.signature(net.forward).parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [names[i] if i < len(names) else "input%d" % i for i in range(count)]


def trace_export(program):
    """torch 2.x: the signature says what each placeholder is."""
    signature, module = program.graph_signature, program.graph_module
    state = dict(program.state_dict)
    state.update(getattr(program, "constants", {}))
    weights = dict(signature.inputs_to_parameters)
    weights.update(signature.inputs_to_buffers)
    weights.update(getattr(signature, "inputs_to_lifted_tensor_constants", {}))
    kinds = {}
    for node in module.graph.nodes:
        if node.op == "placeholder":
            kinds[node] = ("weight", weights[node.name]) if node.name in weights else ("input", node.name)
    new = dict(getattr(signature, "buffers_to_mutate", {}))
    return module, kinds, {k: v.detach() for k, v in state.items() if isinstance(v, torch.Tensor)}, new


def trace(model, inputs):
    if isinstance(model, torch.nn.Module) and hasattr(torch, "export") and hasattr(torch.export, "export"):
        model = torch.export.export(model, tuple(inputs))
    return trace_make_fx(model, inputs) if isinstance(model, torch.nn.Module) else trace_export(model)


# ---- the JSON form ---------------------------------------------------------------------------------------------------

def meta(name, tensor, producer=None, index=0):
    if tensor.dtype not in DTYPES:
        fail("'%s' is of dtype %s, which has no form here" % (name, tensor.dtype))
    if not all(isinstance(d, int) for d in tensor.shape):
        fail("'%s' has sizes that are no numbers: %s" % (name, list(tensor.shape)))
    record = {"name": name, "shape": list(tensor.shape), "dtype": DTYPES[tensor.dtype][0]}
    if producer:
        record.update(producer_node=producer, producer_output_idx=index)
    return record


def plain(value):
    """An argument that is no tensor."""
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return str(value)
    if isinstance(value, torch.device):
        return "cpu"
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    fail("an argument of type %s has no form here: %s" % (type(value).__name__, value))


class Document:
    def __init__(self, module, kinds, state, new):
        self.module, self.kinds, self.state, self.new = module, kinds, dict(state), new or {}
        self.nodes, self.inputs, self.weights, self.mapping, self.used = [], [], [], {}, []
        self.values = {} # per graph node: (name, tensor, producer, index), or a list of them
        for node in module.graph.nodes:
            getattr(self, node.op)(node)

    def weight(self, node, key):
        tensor = self.state[key]
        self.values[node] = (node.name, tensor, None, 0)
        if node.users:
            self.mapping[node.name] = key
            if key not in self.used:
                self.used.append(key)
                self.weights.append(meta(key, tensor))

    def placeholder(self, node):
        kind, name = self.kinds[node]
        if kind == "weight":
            self.weight(node, name)
        else:
            self.values[node] = (name, node.meta["val"], name, 0)
            self.inputs.append(meta(name, node.meta["val"]))

    def get_attr(self, node):
        """A tensor that forward() makes: it is kept as a weight."""
        tensor = operator.attrgetter(node.target)(self.module)
        key = "constant." + node.target.strip("_")
        self.state[key] = tensor.detach()
        self.weight(node, key)

    def call_function(self, node):
        if node.target is operator.getitem:
            self.values[node] = self.values[node.args[0]][node.args[1]]
        elif not isinstance(node.target, torch._ops.OpOverload):
            fail("'%s' calls %s, which is no ATen op" % (node.name, node.target))
        elif node.users or node.target._schema.is_mutable:
            self.call(node)

    def call(self, node):
        inputs, attrs = self.arguments(node)
        values = node.meta["val"]
        several = isinstance(values, (list, tuple))
        results = [None if not isinstance(v, torch.Tensor) else
                   ("%s_%d" % (node.name, i) if several else node.name, v, node.name, i)
                   for i, v in enumerate(values if several else [values])]
        self.values[node] = results if several else results[0]
        self.nodes.append({"name": node.name, "op_type": str(node.target), "inputs": [meta(*t) for t in inputs],
                           "outputs": [meta(*t) for t in results if t], "attrs": attrs})

    def arguments(self, node):
        """The tensors in the order of the schema, and all else by name."""
        inputs, attrs, sizes, masks, given = [], {}, [], [], []
        for i, arg in enumerate(node.target._schema.arguments):
            value = node.args[i] if i < len(node.args) else node.kwargs.get(arg.name, MISSING)
            is_tensor, is_optional = "Tensor" in str(arg.type), "Optional[Tensor]" == str(arg.type)
            if is_tensor and isinstance(value, (list, tuple)):
                there = [v for v in value if v is not None]
                sizes.append(len(there))
                masks.append([v is None for v in value] if len(there) < len(value) else [])
                inputs += [self.values[v] for v in there]
            elif isinstance(value, torch.fx.Node):
                inputs.append(self.values[value])
                given += [True] if is_optional else []
            elif is_tensor and value in (None, MISSING):
                given += [False] if is_optional else []
            elif value is not MISSING:
                attrs[arg.name] = plain(value)
        if sizes:
            attrs["_tensor_list_sizes"] = sizes
        if any(masks):
            attrs["_tensor_list_none_masks"] = masks
        if any(given) and not all(given):
            attrs["_optional_tensor_mask"] = given
        return inputs, attrs

    def output(self, node):
        self.outputs = []
        flat = torch.utils._pytree.tree_flatten(node.args[0])[0]
        for value in flat:
            if isinstance(value, torch.fx.Node):
                name, tensor, producer, index = self.values[value]
                key = self.new.get(value.name)
                self.outputs.append(meta(key + ".new" if key else name, tensor, producer, index))

    def json(self, name):
        return {"model_name": name, "pytorch_version": torch.__version__, "graph_inputs": self.inputs, "graph_outputs": self.outputs,
                "weights": self.weights, "weight_name_mapping": self.mapping, "nodes": self.nodes}


# ---- files -----------------------------------------------------------------------------------------------------------

def raw(tensor):
    tensor = tensor.detach().cpu().contiguous()
    array = tensor.view(torch.int16).numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy()
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def write_safetensors(path, state, keys):
    """Larger elements first, so that all lie at multiples of their size."""
    header, at = {}, 0
    order = sorted(keys, key=lambda k: -state[k].element_size())
    for key in order:
        size = state[key].numel() * state[key].element_size()
        header[key] = {"dtype": DTYPES[state[key].dtype][1], "shape": list(state[key].shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for key in order:
            out.write(raw(state[key]))
    return at


def write_check(name, model, inputs):
    with torch.no_grad():
        results = (model.module() if not isinstance(model, torch.nn.Module) else model)(*[x.clone() for x in inputs])
    flat = [t for t in torch.utils._pytree.tree_flatten(results)[0] if isinstance(t, torch.Tensor)]
    for kind, tensors in (("input", inputs), ("output", flat)):
        for i, tensor in enumerate(tensors):
            wide = tensor.float() if tensor.dtype == torch.bfloat16 else tensor # .npy has no bfloat16
            numpy.save("%s.%s%d.npy" % (name, kind, i), wide.detach().cpu().contiguous().numpy())
    return len(flat)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="MODULE:NAME, FILE.py:NAME or FILE.pt2")
    parser.add_argument("--input", action="append", default=[], help="1x3x224x224, 2x16:int64, or a .npy file; once for each")
    parser.add_argument("--check", action="store_true", help="write inputs and PyTorch's outputs, too")
    parser.add_argument("-o", "--output", default="model", help="the files' names without what is behind the dot")
    args = parser.parse_args()
    torch.manual_seed(0)
    if args.model.endswith(".pt2") and not hasattr(torch, "export"):
        fail("%s: torch %s has no torch.export" % (args.model, torch.__version__))
    model = torch.export.load(args.model) if args.model.endswith(".pt2") else load_model(args.model)
    inputs = [make_input(text) for text in args.input]
    where = Where(model) if isinstance(model, torch.nn.Module) else None
    print("tracing", args.model, file=sys.stderr)
    try:
        traced = trace(model, inputs)
    except Exception as error: # whatever the model or the tracer raises: say in which module
        fail("in %s: %s: %s" % (where.stack[-1] if where and where.stack else "the model", type(error).__name__, error))
    if where:
        where.remove()
    document = Document(*traced)
    name = os.path.basename(args.output)
    with open(args.output + ".json", "w") as out:
        json.dump(document.json(name), out, indent=1)
    size = write_safetensors(args.output + ".safetensors", document.state, document.used)
    print("%s.json: %d ops; %s.safetensors: %d tensors, %d bytes" % (args.output, len(document.nodes), args.output, len(document.used), size))
    if args.check:
        write_check(args.output, model, inputs)


if __name__ == "__main__":
    main()
