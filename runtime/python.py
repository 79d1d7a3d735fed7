# SPDX-License-Identifier: Apache-2.0
#
# Runs Python for an execution. The daemon starts it by runtime/python_start.py and writes a request to standard
# input: ten digits, the length of a JSON document, and that document. What follows on standard input belongs
# to the code. Results go to descriptor 3, one JSON object on each line:
#
#     {"begin":1}        the code begins; it is "handler" if a handler is to be called
#     {"display":{}}     something to show: a map of MIME types
#     {"result":...}     the value of a handler, or of the last expression
#     {"error":{}}       type, message, traceback
#     {"cut":"results"}  this part of the answer is not whole
#     {"done":1}         all went well; of a context: it is ready for the next request
#     {"done":{}}        all is over, and what it took: in a sandbox that is removed after it
#
# In a context (runtime/python_more.py) each line begins with the id of its execution and a space, after an
# empty line, and `done` says what it took.
#
# The code runs in the same interpreter and can change whatever it finds there, so all that is needed after
# it is looked up before it. A lie on descriptor 3 harms only the one who tells it.
#
# What it imports and defines, every execution waits for: so it takes what is built in, and the rest when it is
# needed. That is runtime/python_more.py.
import _ast, _signal, builtins, os, sys, time

try:
    import _json
    quote = _json.encode_basestring
except ImportError:  # not CPython
    from json.encoder import encode_basestring as quote
    _json = None

write, getpid, exit_now, listdir, stat, times = os.write, os.getpid, os._exit, os.listdir, os.stat, os.times
process_time, pause = time.process_time, _signal.pause
RESULT = os.dup(3)
os.close(3)
HOME = getpid()
DEPTH = 100
TEXT_MAX = 65536
NAME_MAX = 256  # of the type of an error
REST_MS = 30  # how long one that waits rests between its steps
REHEARSALS = 12
REHEARSING = False
MARK = ""  # before each line, in a context
BEGUN = 0  # what it had taken before its request came
RESTED = None  # of one that waits: outputs_changed() and has_outputs() before its request came
usage = None


class TooLarge(Exception):
    pass


def more(name):
    """A function of python_more.py, which becomes part of this."""
    if name not in globals():
        exec(code_of(MORE_MADE, MORE_TEXT), globals())
    return globals()[name]


def line_of(kind, text):
    return '%s%s{"%s":%s}\n' % (MARK and "\n", MARK, kind, text)


def send(kind, text):
    put_line(line_of(kind, text))


def put_line(line):
    if getpid() != HOME:
        return  # a child that came back from fork() has nothing to say
    data = line.encode("utf-8", "replace")
    while data:
        data = data[write(RESULT, data):]


def note_cut(part):
    """What is sent of this part of the answer is not all of it."""
    send("cut", '"%s"' % part)


def cut_text(text, part, most=TEXT_MAX):
    if len(text) <= most:
        return text
    note_cut(part)
    return text[:most] + "..."


def plain(value):
    """What a value that JSON does not know becomes: (True, another value) or (False, None)."""
    kind = type(value)
    modules = {c.__module__.split(".")[0] for c in kind.__mro__ if isinstance(c.__module__, str)}
    if isinstance(value, (bytes, bytearray, memoryview)):
        import base64
        return True, base64.b64encode(bytes(value)).decode()
    if "datetime" in modules:
        return True, value.isoformat() if hasattr(value, "isoformat") else str(value)
    if "enum" in modules:
        return True, value.value
    if modules & {"decimal", "uuid", "pathlib", "fractions", "ipaddress"}:
        return True, str(value)
    if "numpy" in modules and hasattr(value, "tolist"):
        return True, value.tolist()
    if "pandas" in modules and hasattr(value, "to_dict"):
        if kind.__name__ == "DataFrame":
            return True, more("table_of")(value)
        return True, value.to_dict()
    if "pandas" in modules and hasattr(value, "tolist"):
        return True, value.tolist()
    if hasattr(kind, "__dataclass_fields__"):
        return True, {name: getattr(value, name) for name in kind.__dataclass_fields__}
    if isinstance(value, BaseException):
        return True, {"type": kind.__name__, "message": str(value)}
    return False, None


ROWS = (dict, list, tuple, set, frozenset, range)
ROWS_BY_NAME = ("dict_keys", "dict_values", "dict_items", "deque")
ITERATORS = ("generator", "map", "filter", "zip", "enumerate")  # whoever looks at them takes something away


def is_huge(value, limit):
    """Whether bytes, or an array or frame of numbers, must have more JSON than that: to make it would take much memory."""
    if isinstance(value, (bytes, bytearray)):
        return len(value) > limit
    if isinstance(value, memoryview):
        return value.nbytes > limit
    return type(value).__module__.partition(".")[0] in ("numpy", "pandas") and getattr(value, "size", 0) > limit


def digits_of(number):
    """All of them: Python refuses to make text of more than 4300, unless it is told otherwise."""
    kept = getattr(sys, "get_int_max_str_digits", int)()
    if kept:
        sys.set_int_max_str_digits(0)
    try:
        return int.__repr__(number)
    finally:
        if kept:
            sys.set_int_max_str_digits(kept)


def encode(value, limit, part="result", takes_iterators=True):
    """JSON, also of what json.dumps refuses; TooLarge above limit bytes, ValueError for what contains itself."""
    parts, size, seen = [], 0, set()

    def put(text):
        nonlocal size
        size += len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
        if size > limit:
            raise TooLarge
        parts.append(text)

    def key_of(key):
        if key is None or isinstance(key, bool):
            return {None: "null", True: "true", False: "false"}[key]
        return str(key)

    def walk(value, depth):
        if depth > DEPTH:
            raise ValueError("the result is nested more than %d deep" % DEPTH)
        if value is None:
            put("null")
        elif value is True or value is False:
            put("true" if value else "false")
        elif isinstance(value, str):
            if len(value) > limit:
                raise TooLarge
            put(quote(str.__str__(value)))
        elif isinstance(value, int):
            number = int(value)
            if number.bit_length() > 4 * limit:
                raise TooLarge
            put(int.__repr__(number) if -(1 << 63) <= number < 1 << 63 else '"%s"' % digits_of(number))
        elif isinstance(value, float):
            number = float(value)
            if number != number:
                put('"NaN"')
            elif number in (float("inf"), float("-inf")):
                put('"Infinity"' if number > 0 else '"-Infinity"')
            else:
                put(float.__repr__(number))
        elif isinstance(value, ROWS) or type(value).__name__ in ROWS_BY_NAME or takes_iterators and type(value).__name__ in ITERATORS:
            if id(value) in seen:
                raise ValueError("the result contains itself")
            seen.add(id(value))
            if isinstance(value, dict):
                put("{")
                taken = set()
                for key in value:
                    name = key_of(key)
                    if name in taken:
                        continue
                    if taken:
                        put(",")
                    taken.add(name)
                    put(quote(name) + ":")
                    walk(value[key], depth + 1)
                put("}")
            else:
                put("[")
                for at, item in enumerate(value):
                    if at:
                        put(",")
                    walk(item, depth + 1)
                put("]")
            seen.discard(id(value))
        elif is_huge(value, limit):
            raise TooLarge
        else:
            known, other = plain(value)
            walk(other if known else cut_text(repr(value), part), depth + 1)

    walk(value, 0)
    return "".join(parts)


# --- things to show ---

PLAIN = (int, float, str, bool, bytes, list, tuple, dict, set, type(None))


def text_of(value):
    """Its repr(), without making a copy of something huge."""
    try:
        size = len(value) if type(value) in PLAIN and hasattr(value, "__len__") else 0
        if size > TEXT_MAX and isinstance(value, (str, bytes)):
            note_cut("results")
            return repr(value[:TEXT_MAX])[:TEXT_MAX] + "..."
        if size > TEXT_MAX // 4:
            note_cut("results")
            return more("shorten")(value)
        return cut_text(repr(value), "results")
    except Exception as failure:
        return "<%s whose repr() failed: %s>" % (type(value).__name__, failure)


def mime_of(value):
    """A map of MIME types for anything; it always has text/plain."""
    if type(value) in PLAIN and not is_figure(value):
        return {"text/plain": text_of(value)}
    return more("rich_mime_of")(value)


def is_figure(value):
    """Whether it is a figure of matplotlib, or what one is made of."""
    return "matplotlib.figure" in sys.modules and more("figure_of")(value) is not None


def show(mime):
    """Shows it in as many of its types as there is room for, the small ones first."""
    made, left = {}, LIMITS["display"]
    flush()
    for name, data in mime.items():
        try:
            made[str(name)] = encode(data, left, "results")
        except (TooLarge, ValueError, RecursionError):
            note_cut("results")
    for name in sorted(made, key=lambda name: len(made[name])):
        left -= len(name) + len(made[name].encode("utf-8", "replace")) + 4
        if left < 0:
            del made[name]
            note_cut("results")
    made = made or {"text/plain": '"(too large to be shown)"'}
    send("display", "{%s}" % ",".join("%s:%s" % (quote(name), text) for name, text in made.items()))


def display(*values, **options):
    for value in values:
        raw = options.get("raw") and isinstance(value, dict)
        show(value if raw else mime_of(value))


def show_figures(shown=None):
    """Shows the figures of matplotlib that are open, but for the one that was shown."""
    if "matplotlib.pyplot" in sys.modules:
        more("show_open_figures")(shown)


# --- running ---

def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            pass


def send_error(failure, name=None):
    import linecache, traceback
    for file, code in SOURCES.items():
        text = code.decode("utf-8", "replace") if isinstance(code, bytes) else code
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    trace = failure.__traceback__
    while trace and trace.tb_frame.f_globals is globals():
        trace = trace.tb_next
    own = trace
    while own and own.tb_frame.f_code.co_filename not in SOURCES:
        own = own.tb_next  # of asyncio, which calls what awaits
    trace = own or trace
    try:
        if isinstance(failure, SyntaxError) and trace is None:
            lines = traceback.format_exception_only(type(failure), failure)
        else:
            made = traceback.TracebackException(type(failure), failure, trace)
            made.stack = traceback.StackSummary.from_list([one for one in made.stack if one.filename != "<sandlot>"])
            lines = made.format()
        text = "".join(lines)
    except BaseException:
        text = ""
    try:
        message = str(failure)
    except BaseException:
        message = ""
    flush()
    if len(text) > TEXT_MAX:
        note_cut("error")
    send("error", encode({"type": cut_text(name or type(failure).__name__, "error", NAME_MAX), "message": cut_text(message, "error"),
                          "traceback": text[-TEXT_MAX:]}, 1 << 20, "error"))


class Identity:
    """Who called, if a mobile app did."""
    cognito_identity_id = cognito_identity_pool_id = None


class Context:
    """What AWS Lambda gives a handler as its second argument."""
    client_context = None
    log_group_name = log_stream_name = ""

    def __init__(self, request):
        self.aws_request_id = request["id"]
        self.function_name = request.get("name") or "handler"
        self.function_version = request.get("version") or "$LATEST"
        self.invoked_function_arn = "arn:aws:lambda:local:0:function:" + self.function_name
        self.memory_limit_in_mb = str(request.get("memory_mb", 0))
        self.identity = Identity()
        self._deadline = time.monotonic() + request.get("timeout_ms", 0) / 1000

    def get_remaining_time_in_millis(self):
        return max(0, int((self._deadline - time.monotonic()) * 1000))

    def log(self, message):
        sys.stdout.write(str(message))


VARIABLES, putenv = os.environ._data, os.putenv  # as bytes; what sets one there takes six times as long
LAMBDA = ((b"AWS_REGION", b"local"), (b"AWS_DEFAULT_REGION", b"local"), (b"AWS_LAMBDA_INITIALIZATION_TYPE", b"on-demand"),
          (b"AWS_EXECUTION_ENV", b"AWS_Lambda_python%d.%d" % sys.version_info[:2]))
DATE = 0, ""


def today():
    """The date, which is made again when another day has begun."""
    global DATE
    day = int(time.time()) // 86400
    if DATE[0] != day:
        DATE = day, "%d/%02d/%02d" % time.gmtime(day * 86400)[:3]
    return DATE[1]


def set_missing(name, data):
    """Sets a variable of the environment, if it is not set; its value."""
    if name not in VARIABLES:
        putenv(name, data)
        VARIABLES[name] = data
    return VARIABLES[name]


def become_lambda(request, file):
    """Environment and logging as AWS Lambda has them, but for what the sandbox or the request says itself."""
    name, version = os.fsencode(request.get("name") or "handler"), request.get("version") or "$LATEST"
    stream = "%s/[%s]%s" % (today(), version, request["id"])
    Context.log_group_name = os.fsdecode(set_missing(b"AWS_LAMBDA_LOG_GROUP_NAME", b"/aws/lambda/" + name))
    Context.log_stream_name = os.fsdecode(set_missing(b"AWS_LAMBDA_LOG_STREAM_NAME", stream.encode()))
    set_missing(b"_HANDLER", os.fsencode(request.get("handler") or "main.handler"))
    set_missing(b"LAMBDA_TASK_ROOT", os.fsencode(os.path.dirname(os.path.abspath(file))) if request.get("path") else os.getcwdb())
    set_missing(b"AWS_LAMBDA_FUNCTION_NAME", name)
    set_missing(b"AWS_LAMBDA_FUNCTION_VERSION", version.encode())
    set_missing(b"AWS_LAMBDA_FUNCTION_MEMORY_SIZE", b"%d" % request.get("memory_mb", 0))
    for variable, data in LAMBDA:
        set_missing(variable, data)
    if not REHEARSING:
        after_import("logging", lambda module: more("log_like_lambda")(module, request["id"]))


# --- modules of others ---

AFTER = {}  # by the name of a module: what is done when it has been imported


def after_import(name, what):
    if name in sys.modules:
        what(sys.modules[name])
    else:
        AFTER[name] = what


class Watch:
    """Comes before all others that find modules, for the few that something is to be done to."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in AFTER:
            return None
        for finder in sys.meta_path:
            others = finder not in (Watch, Substitute) and hasattr(finder, "find_spec")
            spec = finder.find_spec(name, path, target) if others else None
            if spec is not None:
                more("watch")(spec)
                return spec
        return None


class Substitute:
    """Comes after all others: what notebooks import from IPython is there without it."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        return more("substitute")(name) if name.partition(".")[0] == "IPython" else None


ONLY_AST, TOP_LEVEL_AWAIT = 0x400, 0x2000  # flags of compile(), as the module ast names them
COROUTINE = 0x80  # flag of code that awaits something
SOURCES = {}  # by the name of the file


def parse(code, file):
    """The code as a tree; kept where tracebacks look for its lines."""
    SOURCES[file] = code
    return compile(code, file, "exec", ONLY_AST)


def defines(tree, name):
    """Whether the code gives something that name on its outermost level, also if that depends."""
    ast = _ast
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name == name:
                return True
            continue
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(one, ast.Name) and one.id == name for one in targets):
                return True
        if isinstance(node, (ast.Import, ast.ImportFrom)) and any((a.asname or a.name) == name for a in node.names):
            return True
        if isinstance(node, (ast.If, ast.Try, ast.With)) and any(defines(part, name) for part in parts_of(node)):
            return True
    return False


class Part:
    def __init__(self, body):
        self.body = body


def parts_of(node):
    return [Part(node.body + getattr(node, "orelse", []) + getattr(node, "finalbody", [])), *getattr(node, "handlers", [])]


def compile_handler(request, code, file):
    """The name of the handler and the code, compiled, if that shows whether and how it defines one: by a function that
    begins where a line begins. Else None: its tree tells, which takes twice as long."""
    asked = request.get("handler")
    if not asked and (type(code) is not str or "\r" in code or "def handler(" not in code and "def lambda_handler(" not in code):
        return None
    made = compile(code, file, "exec")
    if asked:
        return asked.rsplit(".", 1)[-1], made
    for name in "handler", "lambda_handler":
        for part in made.co_consts:
            if type(part) is type(made) and part.co_name == name and \
                    code.split("\n", part.co_firstlineno)[part.co_firstlineno - 1].startswith(("def ", "async def ", "@")):
                return name, made
        if name in made.co_names:
            return None
    return None


def awaited(value):
    import asyncio
    return asyncio.run(value)


LOOP = None


def run_async(value):
    """Awaits what top-level `await` made; the loop stays, so that what was made in it goes on."""
    global LOOP
    import asyncio
    if LOOP is None:
        LOOP = asyncio.new_event_loop()
        asyncio.set_event_loop(LOOP)
    task = LOOP.create_task(value)
    try:
        return LOOP.run_until_complete(task)
    except BaseException as failure:
        if isinstance(failure, KeyboardInterrupt):
            task.cancel()
        if task.done() and not task.cancelled():
            task.exception()  # whoever runs the code is told of it; asyncio need not complain that nobody was
        raise


async def run_awaiting(codes, scope):
    """All of it in one task, so that what comes before the first `await` finds a loop that runs."""
    for code in codes:
        value = eval(code, scope)
        if code.co_flags & COROUTINE:
            value = await value
    return value


def run_tree(tree, file, scope):
    """Runs it; the value of its last expression, or None."""
    ast, last = _ast, None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    parts = ((tree, "exec"), (last, "eval"))
    codes = [compile(part, file, mode, flags=TOP_LEVEL_AWAIT) for part, mode in parts if part is not None]
    value = None
    if any(code.co_flags & COROUTINE for code in codes):
        value = run_async(run_awaiting(codes, scope))
    else:
        for code in codes:
            value = eval(code, scope)
    return value if last is not None else None


def call_handler(function, request):
    code = getattr(function, "__code__", None) or getattr(getattr(type(function), "__call__", None), "__code__", None)
    takes = 2
    if code is not None and not code.co_flags & 0x04:  # without *args
        takes = code.co_argcount - (1 if hasattr(function, "__self__") or getattr(function, "__code__", None) is None else 0)
    arguments = [request.get("event"), Context(request)][:max(0, takes)]
    value = function(*arguments)
    if hasattr(value, "__await__"):
        value = awaited(value)
    return value


def encode_result(value, takes_iterators=True):
    if value is None:
        return "null"
    try:
        return encode(value, LIMITS["result"], "result", takes_iterators)
    except TooLarge:
        raise TooLarge("the result is larger than %d bytes of JSON" % LIMITS["result"]) from None


def give(value):
    """Sends the value of a last expression, which may be more than JSON can say."""
    flush()
    if value is None:
        return
    try:
        text = encode_result(value, False)  # the code may go on with what it shows
    except (TooLarge, ValueError, RecursionError):
        text = "null"
    show(mime_of(value))
    if not is_figure(value):
        send("result", text)


def load(request):
    path = request.get("path")
    if not path:
        return request["code"], "main.py"
    with open(path, "rb") as file:
        return file.read(), path


def run_once(request):
    is_handler, result = False, None
    try:
        if "files" in request or "files_base64" in request:
            more("write_files")(request)
        code, file = load(request)
        if request.get("path"):
            sys.path[0] = os.path.dirname(os.path.abspath(file))
        sys.argv = [file]
        SOURCES[file] = code
        name, made = compile_handler(request, code, file) or (None, None)
        if not made:
            tree = parse(code, file)
            name = "lambda_handler" if defines(tree, "lambda_handler") and not defines(tree, "handler") else "handler"
        is_handler = made or "handler" in request or "event" in request or defines(tree, name)
        module = type(sys)("main" if is_handler else "__main__")
        module.__file__ = file
        module.display = display
        sys.modules["__main__"] = sys.modules["main"] = module
        send("begin", '"handler"' if is_handler else "1")
        if is_handler:
            become_lambda(request, file)
            exec(made or compile(tree, file, "exec"), module.__dict__)
            function = module.__dict__.get(name)
            if not callable(function):
                raise NameError("the code defines no function %s(event, context)" % name)
            result = encode_result(call_handler(function, request))
            show_figures()
        else:
            value = run_tree(tree, file, module.__dict__)
            give(value)
            show_figures(value)
    except SystemExit as leaving:
        code = leaving.code
        if not is_handler and code in (None, 0):
            send("done", "1")
            raise
        send_error(leaving)
        flush()
        exit_now(code if isinstance(code, int) and 0 < code < 256 else 1)
    except BaseException as failure:
        send_error(failure)
        flush()
        exit_now(1)
    flush()
    if not is_handler and not request.get("passing"):
        send("done", "1")
        return
    if is_handler:
        result = line_of("result", result)
    else:
        result = ""
        end_script()
    put_line(result + line_of("done", spent(request)))
    while request.get("passing"):  # the sandbox ends when the answer is sent; to leave would cost those who wait
        pause()
    exit_now(0)  # its threads end with it, as do the processes that it left


def look_up_usage():
    global usage
    try:
        from resource import getrusage as usage
    except ImportError:
        pass


def cpu_us():
    used = times()
    return int(process_time() * 1000000 + (used[2] + used[3]) * 1000000)


def outputs_changed():
    """When something was last put into the directory of artifacts, or taken out of it."""
    try:
        return stat("/workspace/outputs").st_mtime_ns
    except OSError:
        return None


def has_outputs():
    try:
        return bool(listdir("/workspace/outputs"))
    except OSError:
        return False


def spent(request):
    """What the handler took, and whether there may be files of it; nothing is promised of a sandbox that stays."""
    if not request.get("passing"):
        return "1"
    memory = max(usage(0).ru_maxrss, usage(-1).ru_maxrss) * 1024 if usage else 0
    outputs = RESTED[1] if RESTED and RESTED[0] == outputs_changed() else has_outputs()
    return '{"cpu_us":%d,"memory":%d,"outputs":%s}' % (cpu_us() - BEGUN, memory, "true" if outputs else "false")


def end_script():
    """What the interpreter does before it leaves: it waits for threads, and calls what asked to be called."""
    if "threading" in sys.modules:
        sys.modules["threading"]._shutdown()
    import atexit
    atexit._run_exitfuncs()
    flush()


class Plain:
    """What the scanner of the module json asks its decoder for."""
    strict, object_hook, object_pairs_hook, memo = True, None, None, {}
    parse_float, parse_int, parse_constant = float, int, None


scan = _json and _json.make_scanner(Plain)


def loads(text):
    if scan:
        return scan(text, 0)[0]
    import json
    return json.loads(text)


def receive(channel):
    head = read_all(channel, 10)
    body = head and read_all(channel, int(head))
    return loads(body.decode()) if body else None


class Rehearsed(Exception):
    pass


def end_rehearsal(status=0):
    raise Rehearsed


def rehearse():
    """Takes the whole way of a request that waits for nobody, so that the first does not meet it cold: often enough that
    the interpreter has its shortcuts for it. What it writes goes nowhere, and what it changes is changed back."""
    global LIMITS, REHEARSING, write, pause, exit_now
    request = loads('{"id":"","passing":true,"code":"def handler(event, context): pass","event":null}')
    kept = write, pause, exit_now, sys.argv
    environment, modules = set(os.environ), {name: sys.modules.get(name) for name in ("__main__", "main")}
    LIMITS = {"result": 1 << 20}
    REHEARSING, write, pause, exit_now = True, lambda channel, data: len(data), end_rehearsal, end_rehearsal
    try:
        for _ in range(REHEARSALS):
            try:
                run_once(request)
            except Rehearsed:
                pass
            encode_result([1.5, "text", {"a": 1}, True])
            for name in set(os.environ) - environment:
                del os.environ[name]
    finally:
        REHEARSING, (write, pause, exit_now, sys.argv) = False, kept
        Context.log_group_name = Context.log_stream_name = ""
        SOURCES.clear()
        for name, module in modules.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module


def load_modules(names):
    for name in names:
        try:
            __import__(name)
        except BaseException:  # the code that wants it is told
            pass


def prepare_more():
    """While no request comes, what many handlers ask for first. Where requests come at once this would cost them more than
    it saves: these two take as long as the interpreter itself."""
    try:
        import select
        asked = select.poll()
        asked.register(0, select.POLLIN)
        for name in "json", "traceback":
            if asked.poll(REST_MS):
                return
            load_modules([name])
        if not asked.poll(REST_MS):
            import gc
            gc.collect()  # so that it is not the code's turn soon
    except BaseException:
        pass


for stream in (sys.stdout, sys.stderr):
    stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
sys.meta_path.insert(0, Watch)
sys.meta_path.append(Substitute)
AFTER["matplotlib.pyplot"] = lambda module: more("show_when_asked")(module)
AFTER["IPython.display"] = lambda module: more("display_here")(module)
os.environ.setdefault("MPLBACKEND", "Agg")
if sys.argv[1:2] == ["warm"]:  # it was started before there was a request
    load_modules(sys.argv[2:])
    look_up_usage()
    RESTED = outputs_changed(), has_outputs()
    rehearse()
    send("ready", "1")
    prepare_more()
for name in dir(builtins):  # code may put something else there
    if not name.startswith("_"):
        globals().setdefault(name, getattr(builtins, name))
BEGUN = cpu_us()
REQUEST = receive(0)
if REQUEST.get("passing") and not usage:
    look_up_usage()
if REQUEST.get("env"):
    os.environ.update(REQUEST["env"])
LIMITS = REQUEST["limits"]
if REQUEST.get("serve"):
    more("serve")(REQUEST)
else:
    run_once(REQUEST)
