# SPDX-License-Identifier: MIT
"""The code of what inductor has made of a graph (its output code), with fused kernels as ops.

    buf5 = empty_strided_cpu((512, 64), (64, 1), torch.bool)
    cpp_fused_dropout_1(buf2, primals_6, buf5)

becomes, where the kernel reads the first two and fills the third,

    [buf5] = op([buf2, primals_6], [], [], [2, *(512, 64), *(64, 1)])

A buffer is made where it is first written; what the framework's matrix products fill is their result. All other
statements stay as they are. Where somebody else would see the ops, the compiler's own code runs."""
import ast
import re

ALLOCATES = "empty_strided_cpu"
AT = "_highwater_at"        # calls something from a place in the program
EMPTY = "_highwater_empty"  # allocates as well, by an op
PRODUCT = "_highwater_product"  # calls a matrix product without `out`
SEEN = "_highwater_seen"    # whether somebody else sees ops
OWN = "_highwater_own_"     # begin of the names of functions as the compiler has made them
VIEWS = "reinterpret_tensor"
SOURCES = re.compile(r"# (?:Topologically Sorted )?Source Nodes: \[(.*?)\]")
PRODUCTS = ("mm", "addmm", "bmm", "baddbmm")  # their result is the same with `out` and without it


class Call:
    """Of a fused kernel. `kinds`: of its arguments, "made" those that it makes, whose `types` are in the same order."""

    def __init__(self, kernel, kinds, types):
        self.kernel, self.kinds, self.types = kernel, kinds, types


class Buffer:
    """One that is allocated and not written yet."""

    def __init__(self, statement, size, stride, dtype):
        self.statement, self.size, self.stride, self.dtype = statement, size, stride, dtype

    def is_contiguous(self):
        try:
            size, stride = ast.literal_eval(self.size), ast.literal_eval(self.stride)
        except ValueError:  # dynamic shapes
            return False
        expected = 1
        for length, step in zip(reversed(size), reversed(stride)):
            if length != 1 and step != expected:
                return False
            expected *= length
        return True


def is_call_of(node, name):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def names_in(node):
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def deletes(statement, name):
    return isinstance(statement, ast.Delete) and len(statement.targets) == 1 and names_in(statement) == {name}


def name_node(name, context):
    return ast.Name(id=name, ctx=context())


class Rewriter:
    """`kinds`: of each fused kernel's arguments. `name_of(call)`: the name in the module of the op for it. `lines`: of the
    text, whose comments tell what a kernel was made of; `place_of(names, kernel)`: a number for that, of a fused kernel without
    names, too; None: not known."""

    def __init__(self, kinds, name_of, names, lines=(), place_of=None):
        self.kinds, self.name_of, self.names = kinds, name_of, names
        self.lines, self.place_of = lines, place_of

    def body(self, statements):
        result, pending, i = [], {}, 0

        def settle(names):
            """They are allocated where they stood, as far as it matters."""
            for name in sorted(names & pending.keys()):
                statement = pending.pop(name).statement
                statement.value.func = name_node(EMPTY, ast.Load)
                result.append(statement)

        while i < len(statements):
            statement = statements[i]
            following = statements[i + 1] if i + 1 < len(statements) else None
            i += 1
            if self.allocation(statement, pending):
                continue
            if self.renamed(statement, following, pending):
                i += 1
                continue
            for field in ("body", "orelse"):
                if isinstance(getattr(statement, field, None), list):
                    settle(names_in(statement))
                    setattr(statement, field, self.body(getattr(statement, field)))
            call = statement.value if isinstance(statement, ast.Expr) else None
            place = self.place(statement)
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in self.kinds:
                statement = self.fused(call, pending, settle)
            elif isinstance(call, ast.Call):
                statement = self.product(statement, call, pending)
            settle(names_in(statement))
            if place is not None:
                self.put(statement, place)
            result.append(statement)
        if not (statements and isinstance(statements[-1], ast.Return)):
            settle(set(pending))
        return result

    def place(self, statement):
        """Where in the program it comes from, by the comment above it."""
        value = getattr(statement, "value", None)
        if self.place_of is None or not isinstance(value, ast.Call) or not isinstance(statement, (ast.Assign, ast.Expr)):
            return None
        comment = self.lines[statement.lineno - 2].strip() if statement.lineno >= 2 else ""
        found = SOURCES.match(comment)
        kernel = value.func.id if isinstance(value.func, ast.Name) and value.func.id in self.kinds else None
        return self.place_of(found[1].split(", ") if found else [], kernel) if found or kernel else None

    @staticmethod
    def put(statement, place):
        """f(a, b=c) becomes at(place, f, [a], {"b": c})."""
        call = statement.value
        named = ast.Dict(keys=[ast.Constant(each.arg) for each in call.keywords], values=[each.value for each in call.keywords])
        statement.value = ast.Call(func=name_node(AT, ast.Load), keywords=[], args=[
            ast.Constant(place), call.func, ast.List(elts=call.args, ctx=ast.Load()), named])

    @staticmethod
    def allocation(statement, pending):
        if not (isinstance(statement, ast.Assign) and is_call_of(statement.value, ALLOCATES) and
                len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)):
            return False
        pending[statement.targets[0].id] = Buffer(statement, *statement.value.args)
        return True

    @staticmethod
    def renamed(statement, following, pending):
        """`new = old; del old`, or with another view of all of it."""
        if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)):
            return False
        value, new = statement.value, statement.targets[0].id
        whole = is_call_of(value, VIEWS) and isinstance(value.args[-1], ast.Constant) and value.args[-1].value == 0
        old = value.id if isinstance(value, ast.Name) else value.args[0].id \
            if whole and isinstance(value.args[0], ast.Name) else None
        if old not in pending or not deletes(following, old):
            return False
        buffer = pending[old]
        size, stride = (value.args[1], value.args[2]) if whole else (buffer.size, buffer.stride)
        if whole and not same_count(size, buffer.size):
            return False
        allocation = ast.Call(func=buffer.statement.value.func, args=[size, stride, buffer.dtype], keywords=[])
        del pending[old]
        pending[new] = Buffer(ast.Assign(targets=[name_node(new, ast.Store)], value=allocation), size, stride, buffer.dtype)
        return True

    def fused(self, call, pending, settle):
        kinds, kernel = list(self.kinds[call.func.id]), call.func.id
        made = []
        for i, argument in enumerate(call.args):
            if kinds[i] == "written" and isinstance(argument, ast.Name) and argument.id in pending and \
                    argument.id not in made:
                kinds[i] = "made"
                made.append(argument.id)
        buffers = [pending.pop(name) for name in made]
        parts = {"read": [], "written": [], "number": [], "made": []}
        for of, argument in zip(kinds, call.args):
            parts[of].append(argument)
        layouts = []
        for buffer in buffers:
            layouts += [ast.Call(func=name_node("len", ast.Load), args=[buffer.size], keywords=[]),
                        ast.Starred(value=buffer.size, ctx=ast.Load()), ast.Starred(value=buffer.stride, ctx=ast.Load())]
        types = [eval(compile(ast.Expression(buffer.dtype), "dtype", "eval"), self.names) for buffer in buffers]
        lists = [ast.List(elts=elements, ctx=ast.Load())
                 for elements in (parts["read"], parts["written"], parts["number"], layouts)]
        value = ast.Call(func=name_node(self.name_of(Call(kernel, kinds, types)), ast.Load), args=lists, keywords=[])
        if not made:
            return ast.Expr(value=value)
        targets = ast.List(elts=[name_node(name, ast.Store) for name in made], ctx=ast.Store())
        settle(names_in(value))
        return ast.Assign(targets=[targets], value=value)

    @staticmethod
    def product(statement, call, pending):
        out = next((keyword for keyword in call.keywords if keyword.arg == "out"), None)
        if not (out is not None and isinstance(out.value, ast.Name) and out.value.id in pending and
                isinstance(call.func, ast.Attribute) and call.func.attr in PRODUCTS and
                isinstance(call.func.value, ast.Name) and call.func.value.id == "extern_kernels" and
                pending[out.value.id].is_contiguous()):
            return statement
        del pending[out.value.id]
        call.keywords.remove(out)
        call.args.insert(0, call.func)
        call.func = name_node(PRODUCT, ast.Load)
        return ast.Assign(targets=[name_node(out.value.id, ast.Store)], value=call)


def same_count(one, other):
    try:
        one, other = ast.literal_eval(one), ast.literal_eval(other)
    except ValueError:
        return False
    counts = []
    for size in (one, other):
        counts.append(1)
        for length in size:
            counts[-1] *= length
    return counts[0] == counts[1]


def functions_in(tree, names):
    """call(), and functions for subgraphs (torch.cond), whose code uses some of these names; None: some are elsewhere."""
    holders = [tree, *(each for each in tree.body if isinstance(each, ast.ClassDef))]
    found = [each for holder in holders for each in holder.body if isinstance(each, ast.FunctionDef)]
    found = [each for each in found if each.name == "call" or names_in(each) & names]
    everywhere = sum(isinstance(each, ast.Name) and each.id in names for each in ast.walk(tree))
    within = sum(isinstance(each, ast.Name) and each.id in names for function in found for each in ast.walk(function))
    assigned = sum(isinstance(each, ast.Assign) and bool(names_in(each.targets[0]) & names) for each in tree.body)
    unique = len({each.name for each in found}) == len(found) and "call" in {each.name for each in found}
    return found if unique and everywhere == within + assigned else None


def rewritten(text, kinds, name_of, names, file, place_of=None):
    """The other code of call() and of what it calls for subgraphs in `text`, by their names: it sees `names`, and is said to
    be in `file`. None: it is not of a known form."""
    tree = ast.parse(text)
    found = functions_in(tree, {*kinds, ALLOCATES})
    if found is None:
        return None
    for function in found:
        function.body = Rewriter(kinds, name_of, names, text.split("\n"), place_of).body(function.body)
        function.decorator_list = []
        own = ast.Call(func=name_node(OWN + function.name, ast.Load), keywords=[],
                       args=[name_node(each.arg, ast.Load) for each in function.args.args])
        function.body.insert(0, ast.If(test=ast.Call(func=name_node(SEEN, ast.Load), args=[], keywords=[]),
                                       body=[ast.Return(value=own)], orelse=[]))
    module = ast.fix_missing_locations(ast.Module(body=found, type_ignores=[]))
    made = {}
    exec(compile(module, file, "exec"), names, made)
    return {name: function.__code__ for name, function in made.items()}
