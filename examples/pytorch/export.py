#!/usr/bin/env python3
"""Writes a PyTorch model as files that npu_run and npu_graph_parse_json read.

    python3 export.py torchvision.models:resnet18 --input 1x3x224x224 -o resnet18
    python3 export.py my_net.py:make --input 2x16:int64 --input 2x16x8 --check -o net
    python3 export.py model.pt2 --input 1x3x224x224 -o model          (torch 2.x)

writes NAME.json (the graph), NAME.safetensors (the weights) and with --check NAME.input0.npy .., NAME.output0.npy ..:
what PyTorch computes. Then

    npu_run NAME.json NAME.safetensors --input NAME.input0.npy --verify NAME.output0.npy

MODEL is MODULE:NAME, or FILE.py:NAME, of a module or of what makes one. An input is its sizes, with :dtype behind where
that is not float32, or a .npy file. Sizes may be names:

    python3 export.py torchvision.models:resnet18 --input batchx3xHxW --dim batch=1:8 --dim H=32:224 --dim W=32:224

Such a model is traced three times, at sizes of the ranges (H=32:224:32: of multiples of 32); what differs is a size and
follows from the input's in each run. --check writes a second example, NAME.other.input0.npy .., of sizes that were not
traced. What nn.TransformerEncoder gives at padding is what its layers compute, where PyTorch's fused kernels, which
evaluation without gradients takes, give zeros. torch.export traces where it is there (torch 2.x), make_fx else (torch 1.13) and what torch.export refuses: both
give ATen ops with their schemas. Weights that modules share are written once. A buffer that forward changes is a
state of the graph, which each run finds as the one before has left it; --runs 3 checks what the third gives.
torch.cond and while_loop of torch 2.x become npu.if and npu.while, their graphs child graphs.

Each graph is compared with the model at inputs that were not traced: what forward() computes where no tracer sees it, or
decides by the numbers of an input, is refused. What only an assert asks for is left out."""
import argparse, dis, functools, importlib, importlib.util, inspect, json, operator, os, struct, sys, traceback
import numpy
import torch

DTYPES = {torch.float32: ("float32", "F32"), torch.float64: ("float64", "F64"), torch.float16: ("float16", "F16"),
          torch.bfloat16: ("bfloat16", "BF16"), torch.int8: ("int8", "I8"), torch.int16: ("int16", "I16"),
          torch.int32: ("int32", "I32"), torch.int64: ("int64", "I64"), torch.uint8: ("uint8",
                  "U8"), torch.bool: ("bool", "BOOL"),
          torch.complex64: ("complex64", "C64"), torch.complex128: ("complex128", None)}  # None: safetensors has none
MISSING = object()
# Of torch.ops.higher_order: where its graphs stand among the arguments, and what a file calls them.
FLOWS = {"cond": ((1, "true_graph"), (2, "false_graph")), "while_loop": ((0, "cond_fn"), (1, "body_fn"))}
# With oneDNN, LSTMs are an op of its own in torch 2.x, and numbers of some of its versions are wrong.
PLAIN_KERNELS = functools.partial(torch.backends.mkldnn.flags, enabled=False)
# A scripted function that has run is one kernel else, which no tracer sees into: what it gives would be a constant.
torch._C._jit_set_texpr_fuser_enabled(False)


def fail(message):
    sys.exit("export.py: " + message)


def fail_in(what, error, trace):
    """Of code that is not ours: the last line of it that was reached, and what it raised."""
    lines = [", %s:%d" % (f.filename, f.lineno) for f in traceback.extract_tb(trace)
             if f.filename != __file__ and not f.filename.startswith((os.path.dirname(torch.__file__), "<"))]
    words = " ".join(str(error).split("\n\nWhile executing")[0].split()) # torch.fx adds how it has run a graph
    fail("in %s%s: %s: %s" % (what, lines[-1] if lines else "", type(error).__name__, words))


def label_of(net, name="the model"):
    return "%s (%s)" % (name or "the model", type(net).__name__)


class Named:
    """Whatever PyTorch raises of a model is a line that names it."""

    def __init__(self, model):
        self.model = model

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if isinstance(error, Exception):
            fail_in(label_of(self.model), error, trace)


class Writing:
    """A file that cannot be written is a line, not a traceback."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        return self.path

    def __exit__(self, kind, error, trace):
        if isinstance(error, OSError):
            fail("%s: %s" % (self.path, error.strerror or error))


def check_output(name):
    """Before a model is traced, which takes its time."""
    folder, base = os.path.split(name)
    if not base or not os.path.isdir(folder or "."):
        fail("-o %s: %s" % (name, "there is no such folder" if base else "expected a name for the files"))


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
    except Exception as error: # whatever the file does
        fail_in(text, error, error.__traceback__)
    try:
        net = thing if isinstance(thing, torch.nn.Module) else thing()
    except Exception as error:
        fail_in(text, error, error.__traceback__)
    if not isinstance(net, torch.nn.Module):
        fail("%s is no torch.nn.Module and makes none" % text)
    return net.eval()


def names_of(text):
    """The sizes of an --input as they are written."""
    return [] if text.endswith(".npy") else [d for d in text.partition(":")[0].split("x") if d]


def make_input(text, sizes):
    """1x3x8x8, 2x5:int64, or a .npy file. Floats are normal, integers 0 or 1: small enough for any embedding."""
    if text.endswith(".npy"):
        try:
            return torch.from_numpy(numpy.load(text, allow_pickle=False))
        except OSError as error:
            fail("--input %s: %s" % (text, error.strerror or error))
        except (EOFError, ValueError, TypeError) as error:
            fail("--input %s: no array of numbers: %s" % (text, error))
    dtype = getattr(torch, text.partition(":")[2] or "float32", None)
    try:
        dims = [sizes[d] if d in sizes else int(d) for d in names_of(text)]
    except ValueError:
        dims = [-1]
    if not isinstance(dtype, torch.dtype) or min(dims, default=0) < 0:
        fail("--input %s: expected sizes such as 1x3x224x224, with :dtype behind, or a .npy file; a name needs --dim "
             "NAME=LEAST:MOST and has no x in it" % text)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(dims, dtype=torch.float32 if dtype.is_floating_point else dtype).to(dtype)
    return torch.randint(0, 2, dims).to(dtype)


class Dims:
    """Dims by name, each with its range, and the sizes at which the model is traced: the most, almost the least, and one
    between, another one for each dim, so that three numbers say of which they are. One row is left out where there are
    others: broadcasting looks like it. So are least sizes, if told to: one window or head of many looks like none."""

    def __init__(self, texts, leave_least=False):
        self.leave_least = leave_least
        self.ranges, self.traces, self.other = {}, [{}, {}, {}], {}
        for text in texts:
            name, _, bounds = text.partition("=")
            try:
                least, most, step = (int(b) for b in (bounds if bounds.count(":") == 2 else bounds + ":1").split(":"))
            except ValueError:
                least, most, step = 1, 0, 1
            is_range = 0 <= least < most and step > 0 and (most - least) % step == 0
            if not (is_range and name.isidentifier() and "x" not in name):
                fail("--dim %s: expected NAME=LEAST:MOST or NAME=LEAST:MOST:STEP, a name without an x" % text)
            self.add(name, least, most, step)

    def add(self, name, least, most, step):
        """An odd size between where there may be one: twice the half of it is another size."""
        second = least if least > 1 or step > 1 or most == 2 else 2
        second += step if self.leave_least and second + step < most else 0
        parts = [1 / 2, 1 / 4, 3 / 4, 1 / 8, 3 / 8, 5 / 8, 7 / 8]
        between = [second + int((most - second) * p) // step * step for p in parts]
        between = [min(n | 1, most) if step == 1 else n for n in between] + [most]
        free = [n for n in between if (most, second, n) not in self.tuples()]
        if not free:
            fail("--dim %s: too few sizes to tell it from other dims" % name)
        self.ranges[name] = least, most
        for trace, size in zip(self.traces, (most, second, free[0])):
            trace[name] = size
        self.other[name] = min(second + step, most)

    def tuples(self):
        return {tuple(trace[name] for trace in self.traces): name for name in self.ranges}


# ---- tracing: a graph of ATen calls, and what its placeholders are ---------------------------------------------------

class Where:
    """Names the module whose forward() raises, and the line."""
    stack = [] # of the modules that run

    def __init__(self, net):
        Where.stack, self.handles = [], []
        for name, module in net.named_modules():
            if isinstance(module, torch.jit.ScriptModule): # takes no hooks
                continue
            label = label_of(module, name)
            self.handles.append(module.register_forward_pre_hook(lambda m, x, label=label: self.stack.append(label)))
            self.handles.append(module.register_forward_hook(lambda m, x, y: self.stack.pop() and None))

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        for handle in self.handles:
            handle.remove()
        if isinstance(error, Exception): # whatever the model or the tracer raises
            fail_in(self.stack[-1] if self.stack else "the model", error, trace)


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


class Swapped:
    """While it is traced, a module has the tensors given in place of its own, under all of their names: also in the
    lists of parameters that forward() asks for, and in those that recurrent layers keep."""

    def __init__(self, net, names, tensors):
        self.owners, self.names = [], {}
        for prefix, module in net.named_modules(remove_duplicate=False):
            for own in (module._parameters, module._buffers):
                for key in [k for k, t in own.items() if t is not None]:
                    name = names[prefix + "." + key if prefix else key]
                    self.owners.append((module, own, key, own[key], tensors[name]))
                    self.names[module, key] = name

    def put(self, which):
        for module, own, key, old, new in self.owners:
            own[key] = (old, new)[which]
        for module in {id(o[0]): o[0] for o in self.owners}.values():
            if hasattr(module, "_flat_weights_names"):
                module._flat_weights = [getattr(module, name, None) for name in module._flat_weights_names]

    def __enter__(self):
        self.put(1)
        return self

    def __exit__(self, *error):
        self.put(0)

    def replaced(self):
        """Tensors that forward() has put in the place of others, by their names."""
        return {self.names[module, key]: own[key] for module, own, key, old, new in self.owners
                if isinstance(own[key], torch.Tensor) and own[key] is not new}


def grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    from torch._decomp.decompositions import grid_sampler_2d
    modes = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    if mode == "nearest" and grid.requires_grad: # it has a gradient, which is zero
        return grid_sample(x, grid.detach(), mode, padding_mode, align_corners) + (grid * 0).sum()
    return grid_sampler_2d(x, grid, modes[0].index(mode), modes[1].index(padding_mode), bool(align_corners))


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """As sums over the steps, in ops that have gradients."""
    numbers = lambda lengths: lengths.tolist() if isinstance(lengths, torch.Tensor) else list(lengths)
    steps, lengths, (num_steps, batch, _) = numbers(input_lengths), numbers(target_lengths), log_probs.shape
    if targets.dim() == 1:
        targets = torch.nn.utils.rnn.pad_sequence(targets.split(lengths), batch_first=True)
    width, never = 2 * targets.shape[1] + 1, -1e30
    labels = torch.stack([torch.full_like(targets, blank), targets], 2).flatten(1)
    labels = torch.nn.functional.pad(labels, (0, 1), value=blank)
    may_skip = torch.nn.functional.pad(labels[:, 2:] != labels[:, :-2], (2, 0)) & (labels != blank)
    sums = torch.where(torch.arange(width) < 2, log_probs[0].gather(1, labels), torch.full((), never))
    for t in range(1, num_steps):
        last = torch.nn.functional.pad(sums, (2, 0), value=never)
        ways = torch.stack([sums, last[:, 1:-1], torch.where(may_skip, last[:, :-2], torch.full((), never))])
        goes_on = torch.tensor([t < n for n in steps]).unsqueeze(1)
        sums = torch.where(goes_on, ways.logsumexp(0) + log_probs[t].gather(1, labels), sums)
    ends = torch.tensor([[2 * n, max(2 * n - 1, 0)] for n in lengths])
    is_one = torch.tensor([[False, n == 0] for n in lengths])
    losses = -torch.where(is_one, torch.full((), never), sums.gather(1, ends)).logsumexp(1)
    losses = torch.where(losses > 1e29, torch.zeros(()), losses) if zero_infinity else losses
    means = losses / torch.tensor([max(n, 1) for n in lengths])
    return {"none": losses, "mean": means.mean(), "sum": losses.sum()}[reduction]


class Picked:
    """x[i], where i is a tensor that is one integer: torch reads it, which tracing cannot. An index of one element is
    the same but for one dim, and that what it gives is no view."""
    given = [] # what was given while a model is traced: nobody may write to it

    def __init__(self, x, index):
        index, self.rest, self.picks, dim = index if isinstance(index, tuple) else (index,), [], [], 0
        plain = lambda i: i is None or isinstance(i, (int, slice)) and not isinstance(i, bool)
        self.is_good = any(self.is_one(i) for i in index) and all(self.is_one(i) or plain(i) for i in index)
        for i in index if self.is_good else ():
            self.picks += [(dim, i.reshape(1).long())] if self.is_one(i) else []
            self.rest.append(slice(None) if self.is_one(i) else i)
            dim += self.is_one(i) or not isinstance(i, int)
        self.x = x

    @staticmethod
    def is_one(i):
        integers = (torch.int8, torch.int16, torch.int32, torch.int64)
        return isinstance(i, torch.Tensor) and i.dim() == 0 and i.dtype in integers

    def value(self):
        y = self.x[tuple(self.rest)]
        for dim, i in reversed(self.picks):
            y = torch.ops.aten.index.Tensor(y, [None] * dim + [i]).squeeze(dim)
        return y

    def put(self, value):
        y = self.x[tuple(self.rest)]
        value = value.to(y.dtype) if isinstance(value, torch.Tensor) else torch.full((), value, dtype=y.dtype)
        dims = [dim for dim, i in self.picks]
        value = value.expand([n for d, n in enumerate(y.shape) if d not in dims])
        together = dims == list(range(dims[0], dims[-1] + 1)) # the indices' one dim stands there, else first
        index = [None] * (dims[-1] + 1)
        for dim, i in self.picks:
            index[dim] = i
        torch.ops.aten.index_put_.default(y, index, value.unsqueeze(dims[0] if together else 0))


def get_item(x, index, plain=torch.Tensor.__getitem__):
    picked = Picked(x, index)
    if not picked.is_good:
        return plain(x, index)
    Picked.given.append(picked.value())
    return Picked.given[-1]


def new_tensor(kind, *args, plain=torch.Tensor.__new__, **kwargs):
    """torch.Tensor(...), which torch 1.13 cannot trace."""
    return torch.empty(0).new(*args, **kwargs) if kind is torch.Tensor else plain(kind, *args, **kwargs)


def new_parameter(kind, data=None, requires_grad=True):
    """torch.nn.Parameter(x), whose result no tracer knows: of any other kind of tensor it makes this."""
    parameter = (torch.empty(0) if data is None else data).detach().requires_grad_(requires_grad)
    parameter._is_param = True
    return parameter


def put_chosen(x, index, value):
    """x[index] = value, where tensors choose; False if it is another index. PyTorch drops the dims of one of a value,
    and one may be how many elements a mask has chosen: in this run."""
    index = index if isinstance(index, tuple) else (index,)
    is_all = lambda i: isinstance(i, slice) and i == slice(None)
    tensors = [i for i in index if isinstance(i, torch.Tensor) and i.dim() > 0]
    if not tensors or not isinstance(value, torch.Tensor):
        return False
    masks = [t.dtype == torch.bool for t in tensors]
    together = max(1 if is_mask else t.dim() for t, is_mask in zip(tensors, masks))
    rank = x.dim() + together - sum(t.dim() if is_mask else 1 for t, is_mask in zip(tensors, masks))
    if len(tensors) + sum(map(is_all, index)) < len(index) or not 0 < value.dim() <= rank:
        return False
    torch.ops.aten.index_put_.default(x, [None if is_all(i) else i for i in index], value.to(x.dtype))
    return True


def set_item(x, index, value, plain=torch.Tensor.__setitem__):
    picked = Picked(x, index)
    Picked.given = [y for y in Picked.given if y is not value] # x[i] += 1 comes back
    if picked.is_good:
        return picked.put(value)
    return None if put_chosen(x, index, value) else plain(x, index, value)


class Plain(torch.overrides.TorchFunctionMode if hasattr(torch.overrides, "TorchFunctionMode") else object):
    """While it is traced, functions that look at numbers only to check them do not; what has no gradient in ops that
    are there is spelt out."""

    def __init__(self, known):
        super().__init__()
        self.known = known

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        x = args[0] if args else None
        if function in (torch.Tensor.numpy, torch.Tensor.__array__, torch.Tensor.tolist) and self.known.value(x) is None:
            raise RuntimeError("an input decides the numbers of this tensor: a graph cannot have them as an array or list")
        if function is torch.Tensor.__deepcopy__:
            return args[1].setdefault(id(x), x.detach().clone().requires_grad_(x.requires_grad))
        if function is torch._C._nn.one_hot:
            x, classes = args[0], args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
            if classes >= 0:
                return x.unsqueeze(-1).eq(torch.arange(classes, dtype=x.dtype)).to(torch.int64)
        if function is torch.nn.functional.ctc_loss and self.has_gradient(args[:1]):
            return ctc_loss(*args, **kwargs)
        if function is torch.nn.functional.grid_sample and self.has_gradient(args[:2]) and args[0].dim() == 4:
            return grid_sample(*args, **kwargs)
        if function is torch.bincount:
            return self.counts(*args, **kwargs)
        if function is torch._VF._pad_packed_sequence:
            return function(*args, **kwargs)[0], self.lengths(args[1])
        if function is torch.nn.functional.gaussian_nll_loss: # which asks whether a variance is below 0
            asked, torch.any = torch.any, lambda x: False
            try:
                return function(*args, **kwargs)
            finally:
                torch.any = asked
        return function(*args, **kwargs)

    @staticmethod
    def has_gradient(tensors):
        return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)

    @staticmethod
    def counts(x, weights=None, minlength=0):
        """As many numbers as it was told, where that is what they were: the size is no matter of data then."""
        y = torch.bincount(x, weights, minlength)
        if minlength == 0 or y.shape[0] != minlength:
            return y
        ones = torch.ones_like(x, dtype=torch.int64) if weights is None else weights.to(y.dtype)
        return torch.zeros(minlength, dtype=y.dtype).scatter_add(0, x.long(), ones)

    @staticmethod
    def lengths(sizes):
        """Of the sequences of a packed one. PyTorch writes them where no tracer sees it."""
        from torch.utils._mode_utils import no_dispatch
        with no_dispatch():
            sizes = sizes.tolist()
        return torch.tensor([sum(n > i for n in sizes) for i in range(sizes[0])])


def asserted():
    """The truth that an assert of the model's code asks for, where nothing else does: whether the model may go on is no
    part of a graph. None: the number decides something else."""
    frame = sys._getframe(1)
    tracers = [os.path.join(os.path.dirname(torch.__file__), name) for name in ("fx", "utils", "_ops.py", "overrides.py")]
    while frame and frame.f_code.co_filename.startswith((__file__, "<", *tracers)):
        frame = frame.f_back
    if not frame:
        return None
    code = [i for i in dis.get_instructions(frame.f_code) if i.opname not in ("CACHE", "EXTENDED_ARG", "NOT_TAKEN")]
    at = next((k for k, i in enumerate(code) if i.offset >= frame.f_lasti), len(code))
    at += at < len(code) and code[at].opname.startswith("CALL") # of torch.equal, or bool
    at += at < len(code) and code[at].opname == "TO_BOOL"
    jump = code[at] if at + 1 < len(code) else None
    if jump is None or "JUMP" not in jump.opname or not jump.opname.endswith(("IF_TRUE", "IF_FALSE")):
        return None
    raises = lambda i: "AssertionError" in str(i.argrepr) or i.opname == "LOAD_ASSERTION_ERROR"
    target = next((i for i in code if i.offset >= jump.argval), None)
    is_next, is_target = raises(code[at + 1]), target is not None and raises(target)
    return None if is_next == is_target else jump.opname.endswith("IF_TRUE") == is_next


def known_nodes(node):
    """What a node comes from: of a packed sequence, its sizes come from the lengths alone."""
    if node.target is operator.getitem and node.args[1] == 1 and "_pack_padded" in str(node.args[0].target):
        return [node.args[0].args[1]]
    return node.all_input_nodes


class Known:
    """Numbers of tensors that no input reaches are known while tracing: they may be read, sizes may come from them."""

    def __init__(self, num_weights):
        self.num_weights = num_weights # they are the first placeholders

    def value(self, x):
        """The tensor as it is, or None: an input reaches it."""
        from torch.fx.experimental import proxy_tensor
        from torch.utils._mode_utils import no_dispatch
        mode = getattr(proxy_tensor, "get_proxy_mode", getattr(proxy_tensor, "_get_current_dispatch_mode", None))()
        proxy = proxy_tensor.get_proxy_slot(x, mode.tracer, None)
        todo, seen = [proxy.proxy.node] if proxy is not None else [], set()
        while todo:
            node = todo.pop()
            holders = [n for n in node.graph.nodes if n.op == "placeholder"]
            if node in holders[self.num_weights:]:
                return None
            todo += [n for n in known_nodes(node) if n not in seen]
            seen.add(node)
        with no_dispatch():
            return x.detach().clone()

    def rule(self, op):
        """Computes op, if its tensors are known: they enter the graph as constants."""
        from torch.utils._mode_utils import no_dispatch
        aten = torch.ops.aten

        def compute(*args, **kwargs):
            known = [self.value(x) if isinstance(x, torch.Tensor) else x for x in args]
            if any(k is None and isinstance(x, torch.Tensor) for k, x in zip(known, args)):
                if op in (aten._local_scalar_dense.default, aten.equal.default, aten.allclose.default):
                    if asserted() is not None:
                        return asserted()
                    raise RuntimeError("an input decides a number that Python reads here, by if, bool(), int() or item(): "
                                       "torch.where keeps it in the graph, and so does torch.cond of torch 2.x; what is "
                                       "only checked may be, by an assert of a tensor: assert (x > 0).all()")
                return NotImplemented
            with no_dispatch():
                return op(*known, **kwargs)
        return compute

    def pack(self, x, lengths, batch_first):
        """The steps of all sequences that are that long, one after the other: a choice of rows."""
        lengths = self.value(lengths)
        if lengths is None:
            return NotImplemented
        lengths, x = lengths.tolist(), x.transpose(0, 1) if batch_first else x
        sizes = [sum(n > t for n in lengths) for t in range(max(lengths))]
        rows = [t * len(lengths) + i for t, size in enumerate(sizes) for i in range(size)]
        return x.reshape(-1, *x.shape[2:]).index_select(0, torch.tensor(rows)), torch.tensor(sizes)

    def table(self):
        aten = torch.ops.aten
        ops = [aten._local_scalar_dense.default, aten.repeat_interleave.Tensor, aten.nonzero.default,
               aten.masked_select.default,
               aten.equal.default, aten.allclose.default, aten._unique2.default]
        table = dict(spelt_out())
        table.update({op: self.rule(op) for op in ops})
        table.update({op: drawing(op, table.get(op)) for op in random_ops()})
        table[aten._pack_padded_sequence.default] = self.pack
        return table


DRAWN = "rand randn randperm rand_like randn_like bernoulli.default bernoulli.p bernoulli_.float".split() # here, too


def random_ops():
    """Those that take a generator, in one of their forms."""
    names = {s.name for s in torch._C._jit_get_all_schemas() if any("Generator" in str(a.type) for a in s.arguments)}
    names |= {"aten::rand_like", "aten::randn_like", "aten::randint_like"}
    packets = [getattr(torch.ops.aten, n[6:]) for n in sorted(names) if n.startswith("aten::") and hasattr(torch.ops.aten, n[6:])]
    return [getattr(packet, overload) for packet in packets for overload in packet.overloads()]


def drawing(op, rule):
    """Of a random op: an error, or a note where the library draws numbers as well. Each run has others."""
    name = op.overloadpacket.__name__
    is_drawn, noted = name in DRAWN or "%s.%s" % (name, op._overloadname) in DRAWN, set()

    def draw(*args, **kwargs):
        result = rule(*args, **kwargs) if rule else NotImplemented
        if result is NotImplemented and not is_drawn:
            raise RuntimeError("aten.%s draws random numbers: a graph has none of this kind; give them to forward() as an "
                               "input, or draw them once, for a buffer" % name)
        module = Where.stack[-1] if Where.stack else "the model"
        if result is NotImplemented and module not in noted:
            noted.add(module)
            print("in %s: aten.%s draws random numbers, other ones in each run" % (module, name), file=sys.stderr)
        return result
    return draw


KEPT_BACKWARD = {"convolution_backward", "native_layer_norm_backward", "native_group_norm_backward",
                 "avg_pool2d_backward",
                 "max_pool2d_with_indices_backward", "_adaptive_avg_pool2d_backward", "threshold_backward",
                 "gelu_backward", "embedding_dense_backward", "_softmax_backward_data", "_log_softmax_backward_data"}


def separable(op):
    """The rule of a gradient that is linear along each dim apart, as those of padding, resizing and averages are: by
    products with what the op itself makes of a unit matrix along one dim, where all others have one element."""
    from torch.utils._mode_utils import no_dispatch
    names = [a.name for a in op._schema.arguments]
    rank = next(int(c) for c, d in zip(op._schema.name, op._schema.name[1:]) if c.isdigit() and d == "d")
    scales = [n for n in names if n.startswith("scales")]

    def alone(given, d, size):
        """The op's arguments for dim d alone."""
        def only(values, other):
            values = list(values) * (1 if len(values) > 1 else rank)
            return [v if i == d else other for i, v in enumerate(values)]

        shape = only(given["self"].shape[-rank:] if "self" in given else given["input_size"][2:], 1)
        part = {n: v for n, v in given.items() if v is not None and (n not in scales or scales.index(n) == d)}
        for name, value in part.items():
            if name in ("input_size", "self"):
                part[name] = [1, size] + shape if name == "input_size" else torch.zeros([1, size] + shape)
            elif name == "padding" and len(value) == 2 * rank: # the last dim first
                part[name] = [v if i // 2 == rank - 1 - d else 0 for i, v in enumerate(value)]
            elif name in ("output_size", "kernel_size", "stride", "scale_factors", "padding"):
                part[name] = only(value or given["kernel_size"], 0 if name == "padding" else 1)
            elif name == "divisor_override" and d:
                part[name] = 1
        return [part.get(n) for n in names[1:]]

    def backward(grad, *args):
        given = dict(zip(names[1:], args))
        for d in range(rank):
            size = grad.shape[d - rank]
            with no_dispatch():
                unit = torch.eye(size).view([1, size] + [size if i == d else 1 for i in range(rank)])
                weights = op(unit, *alone(given, d, size)).reshape(size, -1).to(grad.dtype)
            grad = torch.matmul(grad.movedim(d - rank, -1), weights).movedim(-1, d - rank)
        return grad
    return backward


def gradients():
    """Of ops whose gradient is no op of its own here."""
    aten, table = torch.ops.aten, {}
    of_rank = lambda *kinds: [kind % rank for kind in kinds for rank in (1, 2, 3)]
    names = of_rank("reflection_pad%dd", "replication_pad%dd", "upsample_nearest%dd", "_upsample_nearest_exact%dd") + [
        "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
        "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa", "avg_pool3d", "_adaptive_avg_pool3d"]
    for packet in [getattr(aten, name + "_backward") for name in names if hasattr(aten, name + "_backward")]:
        for overload in {"default", "vec"} & set(packet.overloads()):
            table[getattr(packet, overload)] = separable(getattr(packet, overload))

    def of_indices(grad, x, *args, rank):
        """Of a pool that says which element of a plane it took."""
        zeros = grad.new_zeros(list(x.shape[:-rank]) + [x.shape[-rank:].numel()])
        return zeros.scatter_add(-1, args[-1].flatten(-rank), grad.flatten(-rank)).reshape(x.shape)

    for name in ("adaptive_max_pool2d", "adaptive_max_pool3d", "max_pool3d_with_indices", "fractional_max_pool2d",
                 "fractional_max_pool3d"):
        rank = 3 if "3d" in name else 2
        table[getattr(aten, name + "_backward").default] = lambda *args, rank=rank: of_indices(*args, rank=rank)

    def unfold(grad, sizes, dim, size, step):
        if not sizes:
            return NotImplemented
        places, dim = torch.arange(sizes[dim]).unfold(0, size, step).reshape(-1), dim % len(sizes)
        grad = grad.movedim(-1, dim + 1).flatten(dim, dim + 1)
        return grad.new_zeros(list(sizes)).index_add(dim, places, grad)

    def bags(grad, indices, bag, bag_size, chosen, num_weights, by_frequency, mode, scales=None, padding_idx=-1):
        zeros = grad.new_zeros(num_weights, grad.shape[1])
        if by_frequency:
            return NotImplemented
        if mode == 2: # which row each element came from; a bag without any has none
            return zeros.scatter_add(0, chosen.clamp(min=0), grad * (bag_size > 0).unsqueeze(1))
        rows = grad.index_select(0, bag)
        rows = rows / bag_size.index_select(0, bag).unsqueeze(1) if mode == 1 else rows
        rows = rows * scales.unsqueeze(1) if scales is not None else rows
        return zeros.index_add(0, indices, rows * (indices != padding_idx).unsqueeze(1))

    def bag_scales(grad, weight, indices, offsets, bag, mode, padding_idx=-1):
        if bag.numel() != indices.numel():
            bag = torch.searchsorted(offsets, torch.arange(indices.numel()), right=True) - 1
        products = (grad.index_select(0, bag) * weight.index_select(0, indices)).sum(1)
        return products * (indices != padding_idx)

    def distances(grad, a, b, p, d):
        """A point that is the other one has no direction."""
        apart, grad, d = a.unsqueeze(-2) - b.unsqueeze(-3), grad.unsqueeze(-1), d.unsqueeze(-1)
        if p == float("inf"):
            return (grad * apart.sign() * (apart.abs() == d)).sum(-2)
        if p == 0:
            return torch.zeros_like(a)
        slope = apart.sign() * apart.abs() ** (p - 1) / torch.where(d == 0, torch.ones_like(d), d) ** (p - 1)
        return (torch.where(apart == 0, torch.zeros_like(apart), slope) * grad).sum(-2)

    def pairs(grad, x, p, d):
        """pdist is cdist above the diagonal."""
        n = x.shape[0]
        rows, columns = torch.triu_indices(n, n, 1)
        square = lambda v: v.new_zeros(n, n).index_put((rows, columns), v).index_put((columns, rows), v)
        return distances(square(grad), x, x, p, square(d))

    def margins(grad, x, target, p, margin, weight=None, reduction=1):
        x, target = (x, target) if x.dim() == 2 else (x.unsqueeze(0), target.reshape(1))
        places, (n, classes) = target.unsqueeze(1), x.shape
        apart = (margin - x.gather(1, places) + x).clamp(min=0).scatter(1, places, 0.0)
        slope = (2 * apart if p == 2 else (apart > 0).to(x.dtype)) / classes
        slope = slope * weight.index_select(0, target).unsqueeze(1) if weight is not None else slope
        slope = slope.scatter(1, places, -slope.sum(1, keepdim=True)) * grad.reshape(-1, 1)
        return (slope / n if reduction == 1 else slope).reshape(x.shape)

    def solve_lu(lu, pivots, b, left=True, adjoint=False):
        p, l, u = torch.lu_unpack(lu, pivots)
        solve = torch.linalg.solve_triangular
        if not left: # X A = B is A^T X^T = B^T
            return NotImplemented
        if adjoint:
            return p @ solve(l.mH, solve(u.mH, b, upper=False), upper=True, unitriangular=True)
        return solve(u, solve(l, p.mH @ b, upper=False, unitriangular=True), upper=True)

    table.update({aten.unfold_backward.default: unfold, aten._embedding_bag_dense_backward.default: bags,
                  aten._embedding_bag_per_sample_weights_backward.default: bag_scales,
                  aten._cdist_backward.default: distances, aten._pdist_backward.default: pairs,
                  aten.multi_margin_loss_backward.default: margins})
    if hasattr(aten, "linalg_lu_solve"):
        table[aten.linalg_lu_solve.default] = solve_lu
    return table


def between(x, plane, rows, columns):
    """Pixels of x [planes, rows, columns, channels] at places that are no integers; beyond its borders is zero."""
    y = 0
    for r, c in [(rows.floor() + i, columns.floor() + j) for i in (0, 1) for j in (0, 1)]:
        last = [n - 1 for n in x.shape[1:3]]
        weight = (1 - (rows - r).abs()) * (1 - (columns - c).abs())
        weight = weight * ((r >= 0) & (r <= last[0]) & (c >= 0) & (c <= last[1]))
        y = y + x[plane, r.clamp(0, last[0]).long(), c.clamp(0, last[1]).long()] * weight.unsqueeze(-1)
    return y


def roi_align(x, rois, scale, num_rows, num_columns, samples, aligned):
    if samples <= 0: # the boxes decide how many
        return NotImplemented
    first, size = rois[:, 1:3] * scale - 0.5 * aligned, (rois[:, 3:] - rois[:, 1:3]) * scale
    size = size if aligned else size.clamp(min=1)

    def places(dim, parts):
        return first[:, dim:dim + 1] + size[:, dim:dim + 1] * ((torch.arange(parts) + 0.5) / parts)

    rows, columns = places(1, num_rows * samples).unsqueeze(2), places(0, num_columns * samples).unsqueeze(1)
    last = [n - 1 for n in x.shape[2:]]
    is_near = (rows >= -1) & (rows <= last[0] + 1) & (columns >= -1) & (columns <= last[1] + 1)
    plane = rois[:, 0].long().view(-1, 1, 1)
    y = between(x.permute(0, 2, 3, 1), plane, rows.clamp(0, last[0]), columns.clamp(0, last[1]))
    y = (y * is_near.unsqueeze(-1)).reshape(len(rois), num_rows, samples, num_columns, samples, x.shape[1])
    return y.mean((2, 4)).permute(0, 3, 1, 2)


def deform_conv2d(x, weight, offset, mask, bias, row_step, column_step, top, left, row_gap, column_gap, groups, planes,
                  masked):
    (n, channels, h, w), (outputs, _, kernel_h, kernel_w) = x.shape, weight.shape
    parts = offset.reshape(n, planes, kernel_h, kernel_w, 2, *offset.shape[2:])
    rows = parts[:, :, :, :, 0] + (torch.arange(offset.shape[2]) * row_step - top).unsqueeze(1)
    columns = parts[:, :, :, :, 1] + (torch.arange(offset.shape[3]) * column_step - left)
    rows = rows + (torch.arange(kernel_h) * row_gap).view(-1, 1, 1, 1)
    columns = columns + (torch.arange(kernel_w) * column_gap).view(-1, 1, 1)
    plane = torch.arange(n * planes).view(n, planes, 1, 1, 1, 1)
    y = between(x.reshape(n * planes, -1, h, w).permute(0, 2, 3, 1), plane, rows, columns)
    y = y * mask.reshape(rows.shape).unsqueeze(-1) if masked else y
    y = y.movedim(-1, 2).reshape(n, groups, -1, offset.shape[2] * offset.shape[3])
    y = weight.reshape(groups, outputs // groups, -1) @ y
    return y.reshape(n, outputs, *offset.shape[2:]) + bias.view(-1, 1, 1)


def reflections(v, tau):
    """The product of I - tau v v^H, whose v have a one on the diagonal, and zeros above it."""
    v = v.tril(-1) + torch.eye(*v.shape[-2:], dtype=v.dtype)
    q = torch.eye(*v.shape[-2:], dtype=v.dtype).expand(v.shape)
    for i in reversed(range(tau.shape[-1])):
        row = v[..., i:i + 1]
        q = q - tau[..., i:i + 1, None] * row @ (row.mH @ q)
    return q


def without_kernels():
    """Ops that the library has not, whoever traces them; of torchvision, where a model has loaded it, what has results
    of known sizes."""
    rules, ops = {"roi_align": roi_align, "deform_conv2d": deform_conv2d}, torch.ops.torchvision
    table = {getattr(ops, name).default: rule for name, rule in rules.items() if hasattr(ops, name)}

    def einsum(equation, tensors, path=None):
        """Of complex numbers, by those of their parts."""
        for i, x in enumerate(tensors):
            if x.is_complex():
                real, imaginary = (torch.einsum(equation, [*tensors[:i], part, *tensors[i + 1:]]) for part in (x.real, x.imag))
                return torch.view_as_complex(torch.stack([real, imaginary], -1)) if not real.is_complex() else real + imaginary * 1j
        return NotImplemented

    table[torch.ops.aten.einsum.default] = einsum
    if hasattr(torch.ops.aten, "zero"): # what torch.export makes of zero_
        table[torch.ops.aten.zero.default] = lambda x: torch.ops.aten.fill.Scalar(x, 0)
    return {torch.ops.aten.linalg_householder_product.default: reflections, **table}


def spelt_out():
    """Ops that are not written as they are: gradients, by PyTorch's own decompositions; batch norm of a training step,
    which changes its statistics without a word of that in its schema."""
    from torch._decomp import decomposition_table
    aten = torch.ops.aten
    table = {}
    for op, rule in decomposition_table.items():
        name = op.overloadpacket.__name__ if isinstance(op, torch._ops.OpOverload) else ""
        if "backward" in name and name not in KEPT_BACKWARD:
            table[op] = rule
    norm = decomposition_table[aten.native_batch_norm.default]

    def batch_norm(x, weight, bias, mean, var, training, momentum, eps):
        if not training or mean is None:
            return NotImplemented
        return norm(x, weight, bias, mean, var, training, momentum, eps)

    def number(x, y):
        is_bool = x.dtype == torch.bool and isinstance(y, bool)
        return torch.scalar_tensor(y, dtype=torch.bool if is_bool else torch.result_type(x, y))

    def full(size, value, dtype=None, **options):
        is_bool = isinstance(value, bool) and dtype is None # torch 1.13 traces it as an integer
        return aten.full.default(size, value, dtype=torch.bool, **options) if is_bool else NotImplemented

    def attention(q, k, v, mask=None, dropout=0.0, need_weights=False, is_causal=False):
        return NotImplemented if dropout else aten._scaled_dot_product_attention_math.default(
            q, k, v, mask, dropout, need_weights, is_causal)

    def rrelu(x, noise, lower=1 / 8, upper=1 / 3, training=False, generator=None):
        return NotImplemented if training else torch.nn.functional.leaky_relu(x, (lower + upper) / 2)

    def smooth_l1(grad, x, y, reduction, beta):
        d = x - y
        return torch.where(d.abs() < beta, d / beta, torch.sign(d)) * (grad / x.numel() if reduction == 1 else grad)

    table[aten.smooth_l1_loss_backward.default] = smooth_l1
    table.update(gradients())
    table.update(without_kernels())
    for packet in [getattr(aten, "bitwise_" + name) for name in ("and", "or", "xor", "and_", "or_", "xor_")]:
        for op in (packet.Tensor, packet.Scalar): # of a tensor and a number, which torch 1.13 cannot trace as they are
            table[op] = lambda x, y, op=op, to=packet.Tensor: NotImplemented if isinstance(y, torch.Tensor) or (
                op is not to and not isinstance(y, bool)) else to(x, number(x, y))
    table[aten.native_batch_norm.default] = batch_norm
    table[aten.rrelu_with_noise.default] = rrelu
    table[aten.full.default] = full
    if hasattr(aten, "_scaled_dot_product_attention_forward"):
        table[aten._scaled_dot_product_attention_forward.default] = attention
    table[aten._conj.default] = lambda x: torch.tensor(x.conjugate()) if isinstance(x, complex) else NotImplemented
    table[aten.cholesky_inverse.default] = lambda x, upper=False: torch.cholesky_solve(torch.eye(x.shape[-1],
            dtype=x.dtype), x, upper)
    return table


class NoChecks:
    """Distributions and assertions ask whether numbers are good, and indices what they are: not while it is traced."""

    def __enter__(self):
        torch.Tensor.__getitem__, torch.Tensor.__setitem__, Picked.given = get_item, set_item, []
        self.parameter = torch.nn.Parameter.__new__
        torch.Tensor.__new__, torch.nn.Parameter.__new__ = new_tensor, new_parameter
        self.validate, self.check = torch.distributions.Distribution._validate_args, torch._assert
        torch.distributions.Distribution.set_default_validate_args(False)
        torch._assert = lambda condition, message: None

    def __exit__(self, *error):
        torch.distributions.Distribution.set_default_validate_args(self.validate)
        torch._assert, torch.nn.Parameter.__new__ = self.check, self.parameter
        del torch.Tensor.__getitem__, torch.Tensor.__setitem__, torch.Tensor.__new__
        if not error[0] and any(y._version for y in Picked.given):
            raise RuntimeError("x[i] is written to in place, where i is a tensor: write x[i] = y")


class Restored:
    """Leaves a module as it was: what forward() writes to, and what it keeps in attributes: computed weights, caches."""

    def __init__(self, net):
        modules = list(net.modules()) if isinstance(net, torch.nn.Module) else []
        held = [m.__dict__ for m in modules]
        held += [v for d in held for v in d.values() if isinstance(v, (dict, list))]
        self.held = [(v, v.copy()) for v in held]
        tensors = {*net.parameters(), *net.buffers()} if modules else ()
        copy = lambda t: None if t is None else t.detach().clone()
        self.tensors = [(t, t._version, copy(t), copy(t.grad)) for t in tensors]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for holder, was in self.held:
            holder.clear()
            holder.extend(was) if isinstance(holder, list) else holder.update(was)
        with torch.no_grad():
            for tensor, version, was, gradient in self.tensors:
                tensor.grad = gradient
                if tensor._version != version:
                    tensor.copy_(was)


class Products:
    """einsum with more letters than a tensor may have dims: PyTorch gives each operand a dim for every letter. As
    products of matrices, two operands at a time, no tensor has more dims than its own letters."""

    def __enter__(self):
        self.einsum = torch.einsum
        torch.einsum = self.contract

    def __exit__(self, *error):
        torch.einsum = self.einsum

    def contract(self, equation, *operands):
        operands = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
        text = equation.replace(" ", "") if isinstance(equation, str) else "."
        terms, _, result = text.partition("->")
        terms = terms.split(",")
        letters = set(text) - set(",->")
        if "." in text or "->" not in text or len(letters) <= 8 or any(len(set(t)) < len(t) for t in terms):
            return self.einsum(equation, *operands)
        x, term = operands[0], terms[0]
        for i in range(1, len(terms)):
            x, term = self.product(x, term, operands[i], terms[i], set(result).union(*terms[i + 1:]))
        x = x.sum([term.index(c) for c in term if c not in result]) if set(term) - set(result) else x
        return x.permute([[c for c in term if c in result].index(c) for c in result])

    @staticmethod
    def product(a, left, b, right, later):
        """[batch, rows, sums] by [batch, sums, columns]."""
        sizes = dict(zip(left + right, list(a.shape) + list(b.shape)))
        for c in [c for c in left if c not in right and c not in later]:
            a, left = a.sum(left.index(c)), left.replace(c, "")
        for c in [c for c in right if c not in left and c not in later]:
            b, right = b.sum(right.index(c)), right.replace(c, "")
        batch, sums = ([c for c in left if c in right and (c in later) == kept] for kept in (True, False))
        rows, columns = ([c for c in x if c not in y] for x, y in ((left, right), (right, left)))

        def matrices(x, term, *groups):
            order = [term.index(c) for group in groups for c in group]
            return x.permute(order).reshape([numpy.prod([sizes[c] for c in g], dtype=int).item() for g in groups])

        y = torch.bmm(matrices(a, left, batch, rows, sums), matrices(b, right, batch, sums, columns))
        term = "".join(batch + rows + columns)
        return y.reshape([sizes[c] for c in term]), term


def trace_make_fx(net, inputs):
    """torch 1.13: parameters become arguments, so that they are placeholders of the graph."""
    from torch.fx.experimental.proxy_tensor import make_fx
    state, names = unique_state(net)
    keys = [k for k in state if names[k] == k]
    before = {k: state[k].detach().clone() for k in keys} # tracing runs the model, which may write to them

    def fresh():
        return {k: before[k].clone().requires_grad_(state[k].requires_grad) for k in keys}

    replaced = {}

    def call(weights, *args):
        with Swapped(net, names, weights) as swapped, Plain(known):
            results = net(*args)
            replaced.update(swapped.replaced())
            return results, list(replaced.values())

    known = Known(len(keys))
    with torch.no_grad(), Restored(net), PlainAttention(net), NoChecks(), Products(), PLAIN_KERNELS():
        module = make_fx(call, known.table())(fresh(), *[x.clone() for x in inputs])
    holders = [n for n in module.graph.nodes if n.op == "placeholder"]
    kinds = {n: ("weight", k) for n, k in zip(holders, keys)}
    for node, name in zip(holders[len(keys):], argument_names(net, len(inputs))):
        kinds[node] = ("input", name)
    output = [n for n in module.graph.nodes if n.op == "output"][0]
    flat = torch.utils._pytree.tree_flatten(output.args[0])[0]
    return module, kinds, before, list(zip((n.name for n in flat[len(flat) - len(replaced):]), replaced))


def flow_of(node):
    """"cond" or "while_loop", where a node is control flow (torch 2.x: torch.ops.higher_order); else None."""
    is_op = node.op == "call_function" and not isinstance(node.target, torch._ops.OpOverload)
    name = getattr(node.target, "__name__", None) if is_op else None
    return name if name in FLOWS else None


class ShapesOf(torch.fx.Interpreter):
    """Runs a graph once and keeps what each node gives, as dtype and shape; of control flow all its graphs."""

    def run_flow(self, node):
        args = list(self.fetch_args_kwargs_from_env(node)[0])
        copies = lambda values: [v.clone() if isinstance(v, torch.Tensor) else v for v in values]
        if flow_of(node) == "cond":
            results = [ShapesOf(graph).run(*copies(args[3] if len(args) > 3 else ())) for graph in args[1:3]]
            return results[0 if bool(args[0]) else 1]
        carried, others = list(args[2]), list(args[3]) if len(args) > 3 else []
        ShapesOf(args[1]).run(*copies(carried + others))
        while bool(ShapesOf(args[0]).run(*copies(carried + others))):
            carried = list(ShapesOf(args[1]).run(*copies(carried + others)))
        return tuple(carried)

    def run_node(self, node):
        value = self.run_flow(node) if flow_of(node) else super().run_node(node)
        several = isinstance(value, (tuple, list))
        node.meta["val"] = [self.shape_of(v) for v in value] if several else self.shape_of(value)
        return value

    def shape_of(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        shape = torch.empty_like(value, device="meta")
        shape.first = value.storage_offset()
        return shape


def argument_names(net, count):
    if isinstance(net, torch.jit.ScriptModule): # inspect finds no signature
        names = [a.name for a in net.forward.schema.arguments[1:]]
    else:
        names = [p.name for p in inspect.signature(net.forward).parameters.values() if p.kind in (p.POSITIONAL_ONLY,
                p.POSITIONAL_OR_KEYWORD)]
    return [names[i] if i < len(names) else "input%d" % i for i in range(count)]


def trace_export(program):
    """torch 2.x: the signature says what each placeholder is."""
    signature, module = program.graph_signature, program.graph_module
    name_of = lambda key: "constant." + key.replace("lifted_tensor_", "") # the longer name means one without data
    constants = {name_of(k): v for k, v in getattr(program, "constants", {}).items()}
    state = {**program.state_dict, **constants}
    weights = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    for name, key in getattr(signature, "inputs_to_lifted_tensor_constants", {}).items():
        weights[name] = name_of(key)
    for name, key in weights.items(): # buffers of no checkpoint are constants
        weights[name] = key if key in state else name_of(key)
    kinds = {n: ("weight", weights[n.name]) if n.name in weights else ("input", n.name)
             for n in module.graph.nodes if n.op == "placeholder"}
    state = {k: v.detach() for k, v in state.items() if isinstance(v, torch.Tensor)}
    symbols = torch.SymInt, torch.SymFloat, torch.SymBool
    unknown = [k for k in weights.values() if type(state.get(k)) is torch._subclasses.FakeTensor]
    unknown += [n.name for n in module.graph.nodes if isinstance(n.meta.get("val"), symbols)]
    if unknown:
        raise ValueError("inputs decide the number '%s'" % unknown[0])
    return module, kinds, state, list(getattr(signature, "buffers_to_mutate", {}).items())


def changed_buffers(model, inputs):
    """Of a module: the names of those that forward() writes to or replaces."""
    if not isinstance(model, torch.nn.Module):
        return set(getattr(model.graph_signature, "buffers_to_mutate", {}).values())
    with torch.no_grad(), Restored(model):
        before = {name: (tensor, tensor._version) for name, tensor in model.named_buffers()}
        try: # torch.cond traces what it chooses from, and takes no hooks there
            model(*[x.clone() for x in inputs])
        except Exception:
            with Where(model):
                model(*[x.clone() for x in inputs])
        return {name for name, tensor in model.named_buffers()
                if name in before and (tensor is not before[name][0] or tensor._version != before[name][1])}


def run_graph(module, kinds, state, new, inputs):
    """The results of a traced graph. Each node keeps what it has given, as dtype and shape."""
    given = iter([x for x in torch.utils._pytree.tree_flatten(inputs)[0] if x is not None])
    values = [state[kinds[n][1]] if kinds[n][0] == "weight" else next(given)
              for n in module.graph.nodes if n.op == "placeholder"]
    with torch.no_grad(), PLAIN_KERNELS():
        results = ShapesOf(module).run(*[v.detach().clone() if isinstance(v, torch.Tensor) else v for v in values],
                                       enable_io_processing=False)
    flat = torch.utils._pytree.tree_flatten(results)[0]
    return flat[len(new):] if is_new_first(module, new) else flat[:len(flat) - len(new)]


def is_new_first(module, new):
    """torch.export has what buffers become before the results, make_fx behind them."""
    output = [n for n in module.graph.nodes if n.op == "output"][0]
    flat = torch.utils._pytree.tree_flatten(output.args[0])[0]
    return [getattr(v, "name", None) for v in flat[:len(new)]] == [name for name, key in new]


def run_model(model, inputs, runs=1):
    """The tensors that PyTorch computes. The module stays as it is."""
    net = model if isinstance(model, torch.nn.Module) else model.module()
    with torch.no_grad(), Restored(net), PlainAttention(net), PLAIN_KERNELS():
        for _ in range(runs):
            results = net(*[x.clone() for x in inputs])
        results = torch.utils._pytree.tree_flatten(results)[0]
        return [t.clone() for t in results if isinstance(t, torch.Tensor)] # one may be a buffer


def trace(model, inputs):
    """What Document takes. What cannot be traced is said in words that name the model, or its module."""
    with Named(model):
        return trace_either_way(model, inputs)


def trace_either_way(model, inputs):
    """torch.export, where it is there and takes the model: not gradients, packed sequences, sizes that data decides."""
    if not isinstance(model, torch.nn.Module):
        traced = trace_export(model)
        run_graph(*traced, inputs)
        return traced
    if hasattr(torch, "export") and hasattr(torch.export, "export"):
        try:
            program = torch.export.export(model, tuple(inputs)).run_decompositions(without_kernels())
            if getattr(program.graph_signature, "user_inputs_to_mutate", None):
                raise ValueError("an input is written to")
            return checked(model, trace_export(program), inputs)
        except Exception as error: # of many kinds
            words = str(error).split("\n")[0]
            print("torch.export: %s: %s; make_fx instead" % (type(error).__name__, words), file=sys.stderr)
    with Where(model):
        traced = trace_make_fx(model, inputs)
    try:
        return checked(model, traced, inputs)
    except ValueError as error:
        fail("in %s: %s" % (label_of(model), error))


# ---- that nothing of the example has become a constant ---------------------------------------------------------------

def other_inputs(inputs):
    """Elements drawn from those of each input, so that they are in its range; then the same ones from behind, for who
    wants each once."""
    generator = torch.Generator().manual_seed(1)
    places = lambda x: torch.randint(0, max(x.numel(), 1), (x.numel(),), generator=generator)
    number = lambda x: x * 0.75 if x.numel() == 1 and x.is_floating_point() else x
    yield [number(x.flatten()[places(x)].reshape(x.shape)) for x in inputs]
    yield [number(x.flip(list(range(x.dim())))) for x in inputs]


def num_different(got, expected):
    """Elements that rounding does not explain, where they are more than one in a hundred."""
    if got.shape != expected.shape:
        return max(expected.numel(), 1)
    wide = torch.complex128 if expected.is_complex() else torch.float64
    got, expected = got.detach().to(wide), expected.detach().to(wide)
    sizes = expected.abs()[torch.isfinite(expected.abs())]
    close = torch.isclose(got, expected, 0, 0.01 * (sizes.max().item() if sizes.numel() else 0), True)
    count = int((~close).sum())
    return count if count * 100 > close.numel() else 0


def nudged(tensors, size):
    """Floats that many roundings away, up or down."""
    generator = torch.Generator().manual_seed(size)
    for x in tensors:
        signs = 2 * torch.randint(0, 2, x.shape, generator=generator) - 1
        yield x * (1 + size * torch.finfo(x.dtype).eps * signs).to(x.dtype) if x.is_floating_point() else x


def noise(model, inputs, expected):
    """Of each result, whether rounding decides it, as a gradient that is zero, or one through a ReLU near its edge: the
    model itself gives another one if inputs and parameters are other by a few roundings."""
    found = [False] * len(expected)
    for size in (1, 2, 4, 8):
        with Restored(model), torch.no_grad():
            parameters = [p.detach() for p in model.parameters()]
            for p, other in zip(parameters, list(nudged(parameters, size))):
                p.copy_(other)
            try:
                results = run_model(model, list(nudged(inputs, size)))
            except Exception: # of a model that asks what its inputs are
                continue
        found = [was or num_different(a, b) > 0 for was, a, b in zip(found, results, expected)]
    return found


def changed_constants(model, module, inputs):
    """Names of the constants that another trace has otherwise, and of the ops that read them."""
    try:
        other = trace_make_fx(model, inputs)[0]
    except Exception: # that they differ is what is said
        return
    for node in module.graph.nodes:
        if node.op == "get_attr" and isinstance(getattr(module, node.target, None), torch.Tensor):
            a, b = getattr(module, node.target), getattr(other, node.target, None)
            if b is None or a.shape != b.shape or not torch.equal(a, b):
                reader = next(iter(node.users))
                yield "'%s', read by '%s' (%s)" % (node.target.strip("_"), reader, reader.target)


def checked(model, traced, inputs):
    """traced, with its shapes, if it gives what the module gives for inputs that were not traced; ValueError, else: what
    forward() computes where no tracer sees it has become a constant."""
    for others in other_inputs(inputs):
        try:
            expected = run_model(model, others)
            break
        except Exception as error: # whatever the model raises
            words = error
    else:
        print("not checked with other inputs, which the model refuses: %s" % words, file=sys.stderr)
        others = inputs
        expected = run_model(model, others)
    words = difference(traced, others, expected)
    if words:
        decided = noise(model, others, expected)
        words = difference(traced, others, expected, decided)
        if not words:
            print("not checked with other inputs, as rounding decides them: results %s" %
                  ", ".join(str(i) for i, is_noise in enumerate(decided) if is_noise), file=sys.stderr)
    is_random = words and any(num_different(a, b) for a, b in zip(run_model(model, others), expected))
    if words and not is_random:
        names = ["; a constant of the example: " + name for name in changed_constants(model, traced[0], others)]
        raise ValueError("for another input than the one traced %s: forward() computes or decides something by the "
                         "input where no tracer sees it%s" % (words, "".join(names)))
    try:
        run_graph(*traced, inputs)
    except Exception as error: # sizes of another run
        raise ValueError("in another run than the one traced %s: random numbers decide sizes" % unrunnable(error))
    return traced


def unrunnable(error):
    return "the graph cannot be run (%s)" % str(error).split("\n")[0]


def difference(traced, inputs, expected, left_out=()):
    """In words, or None; results may be left out."""
    try:
        results = [t for t in run_graph(*traced, inputs) if isinstance(t, torch.Tensor)]
    except Exception as error: # sizes of the example
        return unrunnable(error)
    for i, (got, want) in enumerate(zip(results, expected)):
        if num_different(got, want) and not any(left_out[i:i + 1]):
            return "%d of %d elements of result %d differ" % (num_different(got, want), want.numel(), i)
    return None if len(results) == len(expected) else "it has %d results, not %d" % (len(results), len(expected))


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


def view_of_strides(op_type, tensor, attrs):
    """The form has no strides: a view with those that the tensor has is the tensor (pooling to 1x1 asks for one, of
    what is in channels-last order), and one of the step from a diagonal element to the next is the diagonal."""
    shape, strides = list(tensor.shape), tensor.stride()
    wide = [i for i, d in enumerate(shape) if d != 1]
    if attrs.get("storage_offset") not in (None, getattr(tensor, "first", None)):
        return op_type, attrs
    if attrs["size"] == shape and all(attrs["stride"][i] == strides[i] for i in wide):
        return "aten.alias.default", {}
    if len(shape) == 2 and attrs["size"] == [min(shape)] and attrs["stride"] == [sum(strides)]:
        return "aten.diagonal.default", {"offset": 0, "dim1": 0, "dim2": 1}
    return op_type, attrs


def memory_of(node):
    """The node that has made the memory in which a result lies, as the schemas of views say."""
    while node.target is operator.getitem or (isinstance(node.target, torch._ops.OpOverload) and
                                              any(r.alias_info for r in node.target._schema.returns)):
        node = node.all_input_nodes[0]
    return node


def written_memory(graph):
    written = set()
    for node in [n for n in graph.nodes if isinstance(n.target, torch._ops.OpOverload)]:
        for value, arg in zip(node.args, node.target._schema.arguments):
            if arg.alias_info and arg.alias_info.is_write and isinstance(value, torch.fx.Node):
                written.add(memory_of(value))
    return written


def needed(graph):
    """Nodes that a result or a write comes from: not what only an assert has asked for, nor x.set_(), which gives memory
    back."""
    is_pure = lambda n: n.target is operator.getitem or n.target is torch.ops.aten.set_.default or (
        isinstance(n.target, torch._ops.OpOverload) and not n.target._schema.is_mutable)
    found = set()
    for node in reversed(graph.nodes):
        if node.op != "call_function" or not is_pure(node) or any(user in found for user in node.users):
            found.add(node)
    return found


class Document:
    """states: names of the buffers that are states; others that change are outputs, NAME.new, for the caller to give
    back."""

    def __init__(self, module, kinds, state, new, states=()):
        self.changing, self.states = states, []
        self.module, self.kinds, self.state, self.new = module, kinds, dict(state), new or []
        self.nodes, self.inputs, self.weights, self.mapping, self.used, self.outputs = [], [], [], {}, [], []
        self.ranges = {} # of dims with a name
        self.values = {} # per graph node: (name, tensor, producer, index), or a list of them
        self.needed = needed(module.graph)
        for node in module.graph.nodes:
            getattr(self, node.op)(node)

    def weight(self, node, key):
        tensor, name = self.state[key], node.name
        if key in self.changing:
            return self.add_state(node, key)
        if name.startswith("c_"): # torch.export's name of a constant without data: here it has some
            name = "p_" + name[2:].replace("lifted_tensor", "constant")
        self.values[node] = (name, tensor, None, 0)
        if any(user in self.needed for user in node.users):
            self.mapping[name] = key
            self.use(key)

    def add_state(self, node, key):
        """States are zero at first: another beginning is a weight, which is taken in the first run."""
        tensor, name = self.state[key], key
        self.values[node] = name, tensor, None, 0
        if bool(torch.count_nonzero(tensor)):
            name, started = key + ".state", ("started.state", torch.zeros((), dtype=torch.bool), None, 0)
            if not any(s["name"] == started[0] for s in self.states):
                self.states.append({**meta(*started), "next": {"name": "started.next", "producer_node": "started.next"}})
                self.nodes.append({"name": "started.next", "op_type": "aten.full.default", "inputs": [], "outputs":
                                   [meta("started.next", started[1])], "attrs": {"size": [], "fill_value": True,
                                                                                 "dtype": "torch.bool"}})
            self.values[node] = node.name, tensor, node.name, 0
            self.use(key)
            inputs = [meta(*started), meta(name, tensor), meta(key, tensor)]
            self.nodes.append({"name": node.name, "op_type": "aten.where.self", "inputs": inputs,
                               "outputs": [meta(node.name, tensor)], "attrs": {}})
        self.states.append({**meta(name, tensor), "next": meta(*self.values[node])})

    def use(self, key):
        if key not in self.used:
            self.used.append(key)
            self.weights.append(meta(key, self.state[key]))

    def constant(self, key, tensor):
        """A number that the attributes of the form cannot hold, as a weight."""
        self.state[key] = tensor
        self.use(key)
        return key, tensor, None, 0

    def placeholder(self, node):
        kind, name = self.kinds[node]
        if kind == "weight":
            self.weight(node, name)
        else:
            taken = name in self.state or any(n.name == name for n in self.module.graph.nodes if n is not node)
            name = name + "_input" if taken else name
            self.values[node] = (name, node.meta["val"], name, 0)
            self.inputs.append(meta(name, node.meta["val"]))

    def get_attr(self, node):
        """A tensor that forward() makes: it is kept as a weight. Graphs of control flow are read with it."""
        tensor = operator.attrgetter(node.target)(self.module)
        if isinstance(tensor, torch.nn.Module):
            return
        key = "constant." + node.target.strip("_")
        self.state[key] = tensor.detach()
        self.weight(node, key)

    def call_function(self, node):
        if node not in self.needed:
            return
        if node.target is operator.getitem:
            self.values[node] = self.values[node.args[0]][node.args[1]]
        elif flow_of(node):
            self.flow(node)
        elif not isinstance(node.target, torch._ops.OpOverload):
            fail("'%s' calls %s, which is no ATen op" % (node.name, node.target))
        else:
            self.call(node)

    def call(self, node):
        self.with_tensors(node)
        inputs, attrs = self.arguments(node)
        op_type = str(node.target)
        if op_type == "aten.full.default" and isinstance(attrs["fill_value"], bool): # torch 2.x leaves it out
            attrs["dtype"] = attrs.get("dtype") or "torch.bool"
        if op_type in ("aten.as_strided.default", "aten.as_strided_.default"):
            op_type, attrs = view_of_strides(op_type, inputs[0][1], attrs)
        if op_type == "aten.as_strided.default":
            inputs, attrs = self.in_memory(node, inputs, attrs)
        self.result(node, op_type, inputs, attrs)

    def in_memory(self, node, inputs, attrs):
        """The form has no strides: what as_strided reads is written out in the order in which it lies in memory, where
        all that is read is in it and nothing writes to it."""
        name, x, source, _ = inputs[0]
        strides, first = x.stride(), getattr(x, "first", 0)
        order = sorted(range(x.dim()), key=lambda d: (-strides[d], -x.shape[d]))
        ordered = x.permute(order)
        start = first if attrs.get("storage_offset") is None else attrs["storage_offset"]
        end = start + sum(max(n - 1, 0) * s for n, s in zip(attrs["size"], attrs["stride"]))
        is_whole = ordered.is_contiguous() and first <= start and end < first + x.numel()
        if source is None or not is_whole or memory_of(node.args[0]) in written_memory(self.module.graph):
            return inputs, attrs
        for op, rest in (("permute", {"dims": order}), ("clone", {"memory_format": "torch.contiguous_format"})):
            if op == "clone" or order != sorted(order):
                made = "%s_%s" % (node.name, op)
                self.nodes.append({"name": made, "op_type": "aten.%s.default" % op, "inputs": [meta(*inputs[0])],
                                   "outputs": [meta(made, ordered, made, 0)], "attrs": rest})
                inputs = [(made, ordered, made, 0)]
        return inputs, {**attrs, "storage_offset": start - first}

    @staticmethod
    def with_tensors(node):
        """A complex number is no attribute of the form: where a tensor may stand instead, it does."""
        packet = node.target.overloadpacket
        is_scalar = "Scalar" in str(node.target) and "Tensor" in packet.overloads()
        if is_scalar and any(isinstance(v, complex) for v in node.args):
            node.target = packet.Tensor

    def result(self, node, op_type, inputs, attrs):
        values = node.meta["val"]
        several = isinstance(values, (list, tuple))
        results = [None if not isinstance(v, torch.Tensor) else
                   ("%s_%d" % (node.name, i) if several else node.name, v, node.name, i)
                   for i, v in enumerate(values if several else [values])]
        self.values[node] = results if several else results[0]
        self.nodes.append({"name": node.name, "op_type": op_type, "inputs": [meta(*t) for t in inputs],
                           "outputs": [meta(*t) for t in results if t], "attrs": attrs})

    def flow(self, node):
        """Control flow: its graphs are documents among its attributes, its operands one or two lists of tensors."""
        name, graphs, inputs, sizes = flow_of(node), FLOWS[flow_of(node)], [], []
        if name == "cond":
            inputs.append(self.operand(node, node.args[0]))
        for i in (3,) if name == "cond" else (2, 3):
            values = node.args[i] if i < len(node.args) else ()
            sizes.append(len(values))
            inputs += [self.operand(node, v) for v in values]
        attrs = {key: self.child(node, node.args[i]) for i, key in graphs}
        attrs["_tensor_list_sizes"] = sizes
        self.result(node, "torch.ops.higher_order." + name, inputs, attrs)

    def operand(self, node, value):
        if not isinstance(value, torch.fx.Node) or not isinstance(self.values[value][1], torch.Tensor):
            fail("'%s': an operand that is no tensor has no form here: %s" % (node.name, value))
        return self.values[value]

    def child(self, node, graph):
        """A graph of control flow as a document. What it does not take from outside are its constants."""
        module = operator.attrgetter(graph.target)(self.module)
        kinds = {n: ("input", n.name) for n in module.graph.nodes if n.op == "placeholder"}
        document = Document(module, kinds, {}, None)
        results = torch.utils._pytree.tree_flatten([n for n in module.graph.nodes if n.op == "output"][0].args[0])[0]
        if len(document.outputs) != len(results):
            fail("'%s': a result of %s is no tensor" % (node.name, graph.target))
        record = document.json(graph.target)
        constants = {key: {**meta(key, document.state[key]), "data": document.state[key].tolist()}
                     for key in document.used}
        keys = "graph_inputs", "graph_outputs", "weight_name_mapping", "nodes"
        return {**{key: record[key] for key in keys}, "weights": [], "constants": constants}

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
            elif is_tensor and isinstance(value, complex):
                inputs.append(self.constant("constant.%s_%s" % (node.name, arg.name), torch.tensor(value)))
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
        flat = torch.utils._pytree.tree_flatten(node.args[0])[0]
        count = len(self.new)
        flat = flat[count:] + flat[:count] if is_new_first(self.module, self.new) else flat
        keys = [None] * (len(flat) - count) + [key for name, key in self.new]
        for value, key in zip(flat, keys):
            if isinstance(value, torch.fx.Node):
                name, tensor, producer, index = self.values[value]
                states = [s for s in self.states if key and s["name"] in (key, key + ".state")]
                if states:
                    states[0]["next"] = meta(name, tensor, producer, index)
                else:
                    self.outputs.append(meta(key + ".new" if key else name, tensor, producer, index))

    def json(self, name):
        return {"model_name": name, "pytorch_version": torch.__version__, "graph_inputs": self.inputs,
                "graph_outputs": self.outputs, "range_constraints": self.ranges,
                "weights": self.weights, "states": self.states, "weight_name_mapping": self.mapping, "nodes": self.nodes}


# ---- dims by name: several traces as one -----------------------------------------------------------------------------

VIEWS = {"aten.view.default", "aten.reshape.default", "aten._unsafe_view.default", "aten._reshape_alias.default"}
WRITTEN_THROUGH = {"aten.view.default", "aten._reshape_alias.default"} # the others may be copies
# Their sizes are among their arguments.
SIZED = {"view", "reshape", "expand", "full", "zeros", "ones", "empty", "new_full", "new_zeros", "new_ones", "new_empty"}


class OtherOps(SystemExit):
    pass


def is_same(values):
    return all(v == values[0] for v in values)


class Merged:
    """A document, with what differs in the others as what it depends on: a dim by its name, the size of a tensor that
    there is already, or a number computed from these. A size is known by what it is in each trace."""

    def __init__(self, documents, dims):
        self.document, self.dims = documents[0], dims.tuples()
        self.sizes, self.made, self.num_numbers = {}, {}, 0 # where a tensor has that size; the nodes that give it
        self.compare_weights(documents)
        self.document.ranges = {n: {"min_val": least, "max_val": most} for n, (least, most) in dims.ranges.items()}
        self.merge_records([d.inputs for d in documents])
        nodes, self.document.nodes = [d.nodes for d in documents], []
        if not is_same([[n["op_type"] for n in list_] for list_ in nodes]):
            raise OtherOps("export.py: the model takes other ops at another size (%s of them): layers that go step by "
                           "step do, along their steps" % ", ".join(str(len(list_)) for list_ in nodes))
        for same in zip(*nodes):
            self.merge_node(same)
        self.merge_records([d.outputs for d in documents])

    def differ(self, node, key=None):
        fail("'%s' (%s)%s differs from size to size in a way that has no form here" %
             (node["name"], node["op_type"], ": " + key if key else ""))

    def compare_weights(self, documents):
        for key in documents[0].used:
            first = documents[0].state[key]
            for tensor in (d.state.get(key) for d in documents[1:]):
                if tensor is None or tensor.shape != first.shape or not torch.allclose(tensor, first, 0, 0, True):
                    fail("constant '%s' differs from size to size" % key)

    def merge_node(self, nodes):
        node = nodes[0]
        if node["op_type"] in VIEWS: # all sizes of which are known, also those written as -1
            for n in nodes:
                op, key = ("view", "size") if n["op_type"] in WRITTEN_THROUGH else ("reshape", "shape")
                n.update(op_type="aten.%s.default" % op, attrs={key: n["outputs"][0]["shape"][:]})
        if not is_same([n["attrs"].keys() for n in nodes]):
            self.differ(node)
        read = {size for same in zip(*(n["inputs"] for n in nodes)) for size in zip(*(r["shape"] for r in same))}
        made = [list(zip(*(r["shape"] for r in same))) for same in zip(*(n["outputs"] for n in nodes))]
        self.merge_records([n["inputs"] for n in nodes])
        for key in node["attrs"]:
            values = tuple(n["attrs"][key] for n in nodes)
            if not (node["op_type"].startswith("aten.arange.") and key == "end" and values in self.sizes):
                node["attrs"][key] = self.merge_attribute(node, key, values)
        known = dict(self.sizes)
        self.merge_records([n["outputs"] for n in nodes])
        self.document.nodes.append(node)
        is_sized = len(made) != 1 or node["op_type"].split(".")[1] in SIZED
        if not is_sized and any(s in known and s not in read for s in made[0]):
            self.tell_size(node, made[0], known)

    def merge_records(self, lists):
        """Of tensors: a dim that is no dim with a name is what the op gives."""
        for same in zip(*lists):
            record = same[0]
            if not is_same([(r["name"], len(r["shape"]), r["dtype"]) for r in same]):
                self.differ({"name": record["name"], "op_type": "a tensor"})
            sizes = list(zip(*(r["shape"] for r in same)))
            for i, size in enumerate(sizes):
                if not is_same(size):
                    self.sizes.setdefault(size, (record, i))
            record["shape"] = [s[0] if is_same(s) else self.dims.get(s) for s in sizes]

    def merge_attribute(self, node, key, values):
        if is_same(values):
            return values[0]
        if all(isinstance(v, list) for v in values) and is_same([len(v) for v in values]):
            items = list(zip(*values))
            new = [i for i, item in enumerate(items) if not is_same(item) and item not in self.sizes]
            follows = new if len(new) == 1 and node["op_type"] in VIEWS else []
            return [-1 if i in follows else self.merge_attribute(node, key, item) for i, item in enumerate(items)]
        if not all(type(v) is int for v in values):
            self.differ(node, key)
        return self.size(values) or self.number(node, key, values)

    def tell_size(self, node, sizes, known):
        """Of a slice, or a convolution beside another one: that its result has a size that is there already, nobody knows
        but who has traced it. A view behind it says so, under the node's name. A range is cut from the longest."""
        inner, output = node["name"] + "_unsized", node["outputs"][0]
        is_range = node["op_type"].startswith("aten.arange.")
        shape = [s[0] if is_same(s) or is_range else None for s in sizes]
        record = {"name": inner, "shape": shape, "dtype": output["dtype"]}
        node.update(name=inner, outputs=[record])
        inputs = [{**record, "producer_node": inner, "producer_output_idx": 0}]
        for i, size in enumerate(sizes):
            if not is_same(size) and size not in known:
                self.sizes[size] = inputs[0], i
        shape = [s[0] if is_same(s) else self.size(s) for s in sizes]
        if is_range:
            inputs = [self.call("aten.slice.Tensor", inputs, {"dim": 0, "start": 0, "end": shape[0], "step": 1},
                                node["name"] + "_cut", {**record, "shape": [None]})]
        self.call("aten.reshape.default", inputs, {"shape": shape}, output["name"], output)

    def call(self, op, inputs, attrs, name, result={"shape": [], "dtype": "int64"}):
        result = {**result, "name": name}
        self.document.nodes.append({"name": name, "op_type": op, "inputs": inputs, "outputs": [result], "attrs": attrs})
        return {**result, "producer_node": name, "producer_output_idx": 0}

    def size(self, size):
        """A node that gives a dim of a tensor; None where no tensor has it."""
        if size in self.sizes and size not in self.made:
            record, dim = self.sizes[size]
            self.made[size] = self.call("aten.sym_size.int", [{"producer_node": record["name"], **record}], {"dim": dim},
                                        "size_%d" % len(self.made))
        return self.made.get(size)

    def number(self, node, key, values):
        """A node that gives a multiple of a size, a product or quotient of sizes, or factor * dim + rest."""
        self.num_numbers += 1
        name, apart = "number_%d" % self.num_numbers, lambda s: (values[0] - values[1]) // ((s[0] - s[1]) or 1)
        is_line = lambda s, factor, rest: values == tuple(factor * n + rest for n in s)
        multiples = [(s, apart(s)) for s in self.sizes if apart(s) and is_line(s, apart(s), 0)]
        products = [(s, t) for s in self.sizes for t in self.sizes if values == tuple(m * n for m, n in zip(s, t))]
        parts = [(s, n) for s in self.sizes for n in range(2, 65) if values == tuple(m // n for m in s)]
        lines = [(s, apart(s), values[0] - apart(s) * s[0]) for s in self.dims if apart(s)]
        lines = [line for line in lines if is_line(*line)]
        if multiples:
            x = self.call("aten.mul.Scalar", [self.size(multiples[0][0])], {"other": multiples[0][1]}, name + "_times")
        elif products:
            x = self.call("aten.mul.Tensor", [self.size(s) for s in products[0]], {}, name + "_product")
        elif parts:
            x = self.call("aten.floor_divide.Scalar", [self.size(parts[0][0])], {"other": parts[0][1]}, name + "_part")
        elif lines:
            x = self.call("aten.mul.Scalar", [self.size(lines[0][0])], {"other": lines[0][1]}, name + "_times")
            x = self.call("aten.add.Scalar", [x], {"other": lines[0][2]}, name + "_plus")
        else:
            self.differ(node, key)
        return x


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
        if not DTYPES[state[key].dtype][1]:
            fail("weight '%s' is of dtype %s, which safetensors files do not have" % (key, state[key].dtype))
        size = state[key].numel() * state[key].element_size()
        header[key] = {"dtype": DTYPES[state[key].dtype][1], "shape": list(state[key].shape),
                       "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with Writing(path), open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for key in order:
            out.write(raw(state[key]))
    return at


def write_check(name, model, inputs, runs):
    with Named(model):
        flat = run_model(model, inputs, runs)
    for kind, tensors in (("input", inputs), ("output", flat)):
        for i, tensor in enumerate(tensors):
            wide = tensor.float() if tensor.dtype == torch.bfloat16 else tensor # .npy has no bfloat16
            with Writing("%s.%s%d.npy" % (name, kind, i)) as path:
                numpy.save(path, wide.detach().cpu().contiguous().numpy())
    return len(flat)


def trace_sizes(model, args, dims, traced, states):
    for dims in (dims, Dims(args.dim, leave_least=True)):
        try:
            again = [trace(model, [make_input(text, sizes) for text in args.input]) for sizes in dims.traces[1:]]
            return Merged([Document(*t, states) for t in (traced, *again)], dims).document, dims
        except OtherOps as error:
            failed = error
    raise failed


def count(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("%s: expected a number from 1 on" % text)
    return int(text)


def load_exported(path):
    try:
        return torch.export.load(path)
    except OSError as error:
        fail("%s: %s" % (path, error.strerror or error))
    except Exception as error: # a file of another version, or none
        fail_in(path, error, error.__traceback__)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="MODULE:NAME, FILE.py:NAME or FILE.pt2")
    parser.add_argument("--input", action="append", default=[],
                        help="1x3x224x224, 2x16:int64, batchx8, or a .npy file; once for each")
    parser.add_argument("--dim", action="append", default=[],
                        help="NAME=LEAST:MOST[:STEP] of a size with a name; once for each")
    parser.add_argument("--check", action="store_true", help="write inputs and PyTorch's outputs, too")
    parser.add_argument("--runs", type=count, default=1, help="of the model, with the same inputs, before --check looks")
    parser.add_argument("-o", "--output", default="model", help="the files' names without what is behind the dot")
    args = parser.parse_args()
    check_output(args.output)
    torch.manual_seed(0)
    if args.model.endswith(".pt2") and not hasattr(torch, "export"):
        fail("%s: torch %s has no torch.export" % (args.model, torch.__version__))
    model = load_exported(args.model) if args.model.endswith(".pt2") else load_model(args.model)
    dims = Dims(args.dim)
    for name in dims.ranges:
        if not any(name in names_of(text) for text in args.input):
            fail("--dim %s: no input has such a size" % name)
    inputs = [make_input(text, dims.traces[0]) for text in args.input]
    if args.model.endswith(".pt2") and not inputs:
        inputs = list(model.example_inputs[0])
    print("tracing", args.model, file=sys.stderr)
    states = changed_buffers(model, inputs) # first: what functions keep of a trace is no tensor
    traced = trace(model, inputs)
    document = Document(*traced, states)
    if dims.ranges:
        document, dims = trace_sizes(model, args, dims, traced, states)
    name = os.path.basename(args.output)
    with Writing(args.output + ".json") as path, open(path, "w") as out:
        json.dump(document.json(name), out, indent=1)
    size = write_safetensors(args.output + ".safetensors", document.state, document.used)
    print("%s.json: %d ops; %s.safetensors: %d tensors, %d bytes" % (args.output, len(document.nodes), args.output,
                                                                     len(document.used), size))
    if args.check:
        write_check(args.output, model, inputs, args.runs)
    if args.check and dims.ranges:
        write_check(args.output + ".other", model, [make_input(text, dims.other) for text in args.input], args.runs)


if __name__ == "__main__":
    main()
