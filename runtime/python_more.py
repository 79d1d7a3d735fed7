# SPDX-License-Identifier: Apache-2.0
#
# The part of runtime/python.py that few executions need, in the same namespace: figures, tables and all that is
# shown in more than text, and contexts.

REPRS = (("_repr_html_", "text/html"), ("_repr_markdown_", "text/markdown"), ("_repr_latex_", "text/latex"),
         ("_repr_json_", "application/json"), ("_repr_svg_", "image/svg+xml"), ("_repr_png_", "image/png"),
         ("_repr_jpeg_", "image/jpeg"), ("_repr_javascript_", "application/javascript"), ("_repr_pdf_", "application/pdf"))
CHART = "application/vnd.sandlot.chart+json"  # what a figure shows, as numbers
DATA = "application/vnd.sandlot.data+json"  # a table: column -> list
TABLE = "application/vnd.sandlot.table+json"  # a table: index, columns, data
POINTS_MAX = 10000
ROWS_MAX = 10000


def base64_of(data):
    import base64
    return base64.b64encode(data).decode()


def shorten(value):
    import reprlib
    short = reprlib.Repr()
    short.maxlist = short.maxtuple = short.maxset = short.maxdict = 1000
    short.maxstring = short.maxother = 1000
    return short.repr(value)[:TEXT_MAX]


def rich_mime_of(value):
    figure = figure_of(value)
    if figure is not None:
        return picture(figure)
    found = {}
    if not isinstance(value, type):
        add_bundle(value, found)
        add_reprs(value, found)
        module = type(value).__module__
        if module.startswith("PIL.") and hasattr(value, "save") and "image/png" not in found:
            import io
            out = io.BytesIO()
            value.save(out, "PNG")
            found["image/png"] = base64_of(out.getvalue())
        if module.startswith("pandas."):
            try:
                add_table(value, found)
            except Exception:
                pass  # what cannot be said in numbers is said in text
    if "text/plain" not in found:
        found["text/plain"] = text_of(value)
    return found


def add_bundle(value, found):
    bundle = getattr(type(value), "_repr_mimebundle_", None)
    if bundle:
        try:
            made = bundle(value)
            made = made[0] if isinstance(made, tuple) else made
            for mime, data in (made or {}).items():
                found[str(mime)] = base64_of(data) if isinstance(data, bytes) else data
        except Exception:
            pass


def add_reprs(value, found):
    for name, mime in REPRS:
        method = getattr(type(value), name, None)
        if method is None or mime in found:
            continue
        try:
            data = method(value)
        except Exception:
            continue
        data = data[0] if isinstance(data, tuple) else data
        if data is not None:
            found[mime] = base64_of(data) if isinstance(data, bytes) else data


def add_table(value, found):
    """A data frame or series as data, with and without its index."""
    if type(value).__name__ == "Series":
        value = value.to_frame(name=value.name if value.name is not None else "0")
    if type(value).__name__ != "DataFrame":
        return
    if len(value) > ROWS_MAX:
        note_cut("results")
    rows = value.head(ROWS_MAX)
    found[DATA] = {}
    for name, column in zip(rows.columns, columns_of(rows)):
        found[DATA].setdefault(str(name), column)  # of columns with one name the first; all are in the table
    found[TABLE] = {**table_of(rows), "rows": len(value)}


def columns_of(frame):
    return [list(frame.iloc[:, at]) for at in range(len(frame.columns))]


def table_of(frame):
    """What to_dict("split") says, which warns of columns with one name."""
    columns = columns_of(frame)
    return {"index": list(frame.index), "columns": list(frame.columns),
            "data": [list(row) for row in zip(*columns)] if columns else [[] for _ in range(len(frame))]}


# --- figures ---

def figure_of(value):
    """The matplotlib figure that a value is, or is part of."""
    figures = sys.modules.get("matplotlib.figure")
    if not figures:
        return None
    if isinstance(value, figures.Figure):
        return value
    artist = sys.modules.get("matplotlib.artist")
    if artist and isinstance(value, artist.Artist):
        found = getattr(value, "figure", None)
        return found if isinstance(found, figures.Figure) else None
    return figure_of(value[0]) if isinstance(value, (list, tuple)) and value else None


def picture(figure):
    import io
    found = {"text/plain": repr(figure)}
    for mime, kind in (("image/png", "png"), ("image/svg+xml", "svg")):
        out = io.BytesIO()
        figure.savefig(out, format=kind, bbox_inches="tight")
        found[mime] = base64_of(out.getvalue()) if kind == "png" else out.getvalue().decode()
    try:
        found[CHART] = chart_of(figure)
    except Exception:
        pass  # a figure of a kind that is not known is a picture
    return found


def show_open_figures(shown):
    pyplot = sys.modules["matplotlib.pyplot"]
    try:
        if figure_of(shown) is not None:
            pyplot.close(figure_of(shown))
        for number in pyplot.get_fignums():
            figure = pyplot.figure(number)
            if figure.get_axes():
                show(picture(figure))
        pyplot.close("all")
    except Exception as failure:
        print("a figure could not be drawn: %s" % failure, file=sys.stderr)


def show_when_asked(pyplot):
    """With the backend that draws for nobody, show() shows what is open now, so that two figures come in their order."""
    show_windows = pyplot.show

    def show_now(*values, **options):
        if pyplot.get_backend().lower() != "agg":
            return show_windows(*values, **options)
        show_open_figures(None)

    pyplot.show = show_now


def chart_of(figure):
    charts = [chart for chart in map(axes_chart, figure.get_axes()) if chart]
    if len(charts) == 1:
        return charts[0]
    if not charts:
        return {"type": "unknown", "title": "", "elements": []}
    title = figure._suptitle.get_text() if figure._suptitle else ""
    return {"type": "superchart", "title": title, "elements": charts}


def axes_chart(axes):
    for kind, elements_of in (("pie", pie_elements), ("box_and_whisker", box_elements), ("bar", bar_elements),
                              ("scatter", scatter_elements), ("line", line_elements)):
        elements = elements_of(axes)
        if elements:
            chart = {"type": kind, "title": axes.get_title(), "elements": elements}
            return chart if kind == "pie" else {**chart, **scales(axes, kind)}
    return None


def scales(axes, kind):
    found = {}
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        label = axis.get_label_text()
        at = label.rfind("(")
        found[name + "_label"] = label
        found[name + "_unit"] = label[at + 1:-1] if 0 <= at and label.endswith(")") else None
        if kind in ("line", "scatter"):
            found[name + "_ticks"] = [number(tick) for tick in axis.get_ticklocs()]
            found[name + "_tick_labels"] = [text.get_text() for text in axis.get_ticklabels()]
            converter = type(getattr(axis, "converter", None)).__name__
            found[name + "_scale"] = ("datetime" if "Date" in converter else "categorical" if "Category" in converter
                                      else axis.get_scale())
    return found


def number(value):
    value = value.item() if hasattr(value, "item") else value
    return value.isoformat() if hasattr(value, "isoformat") else value


def label_of(artist):
    text = str(artist.get_label() or "")
    return "" if text.startswith("_") else text


def pairs(xs, ys):
    points = list(zip(xs, ys))
    if len(points) > POINTS_MAX:
        note_cut("results")
    return [[number(x), number(y)] for x, y in points[:POINTS_MAX]]


def line_elements(axes):
    return [{"label": label_of(line), "points": pairs(line.get_xdata(), line.get_ydata())} for line in axes.get_lines()]


def scatter_elements(axes):
    from matplotlib.collections import PathCollection
    return [{"label": label_of(one), "points": pairs(one.get_offsets()[:, 0], one.get_offsets()[:, 1])}
            for one in axes.collections if isinstance(one, PathCollection)]


def bar_elements(axes):
    from matplotlib.container import BarContainer
    found = []
    for bars in axes.containers:
        if not isinstance(bars, BarContainer):
            continue
        upright = getattr(bars, "orientation", "vertical") != "horizontal"
        axis = axes.xaxis if upright else axes.yaxis
        names = dict(zip((round(float(tick), 6) for tick in axis.get_ticklocs()), (t.get_text() for t in axis.get_ticklabels())))
        for bar in bars:
            middle = bar.get_x() + bar.get_width() / 2 if upright else bar.get_y() + bar.get_height() / 2
            name = names.get(round(float(middle), 6)) or str(number(middle))
            found.append({"label": name, "group": label_of(bars), "value": number(bar.get_height() if upright else bar.get_width())})
    return found


def pie_elements(axes):
    from matplotlib.patches import Wedge
    return [{"label": label_of(one), "angle": number(one.theta2 - one.theta1), "radius": number(one.r)}
            for one in axes.patches if isinstance(one, Wedge)]


def box_elements(axes):
    """From the shapes that boxplot() leaves: boxes as closed lines of five points or patches, two whiskers each."""
    from matplotlib.patches import PathPatch
    lines = axes.get_lines()
    boxes = [line for line in lines if len(line.get_xdata()) == 5 and line.get_xdata()[0] == line.get_xdata()[-1]
             and line.get_ydata()[0] == line.get_ydata()[-1]]
    boxes += [one for one in axes.patches if isinstance(one, PathPatch)]
    names = dict(zip((round(float(tick), 6) for tick in axes.xaxis.get_ticklocs()), (t.get_text() for t in axes.xaxis.get_ticklabels())))
    found = []
    for box in boxes:
        path = box.get_path().vertices
        left, right = path[:, 0].min(), path[:, 0].max()
        low, high = path[:, 1].min(), path[:, 1].max()
        middle = (left + right) / 2
        inside = lambda line: all(left - 1e-9 <= x <= right + 1e-9 for x in line.get_xdata())
        mine = [line for line in lines if line is not box and len(line.get_xdata()) and inside(line)]
        median = [line.get_ydata()[0] for line in mine if len(line.get_ydata()) == 2 and line.get_ydata()[0] == line.get_ydata()[1]
                  and low <= line.get_ydata()[0] <= high]
        whiskers = [y for line in mine if len(line.get_xdata()) == 2 and line.get_xdata()[0] == line.get_xdata()[1]
                    for y in line.get_ydata()]
        outliers = [y for line in mine if line.get_linestyle() == "None" for y in line.get_ydata()]
        if not median:
            continue
        found.append({"label": names.get(round(float(middle), 6), ""), "min": number(min(whiskers or [low])), "first_quartile": number(low),
                      "median": number(median[0]), "third_quartile": number(high), "max": number(max(whiskers or [high])),
                      "outliers": [number(y) for y in outliers]})
    return found


# --- modules of others ---

def watch(spec):
    """Has done what is to be done to the module when its own code has run."""
    loader = spec.loader

    def exec_module(module):
        del loader.exec_module
        loader.exec_module(module)
        try:
            AFTER.pop(spec.name)(module)
        except Exception:
            pass  # the module itself is whole

    if not isinstance(loader, type):  # what is built in, nobody asks for
        loader.exec_module = exec_module


def log_like_lambda(logging, request_id):
    """The root logger writes to standard output, in the format of AWS Lambda."""
    root = logging.getLogger()
    if root.handlers:
        return

    class LambdaLoggerHandler(logging.Handler):
        def emit(self, record):
            try:
                sys.stdout.write(self.format(record).rstrip("\n") + "\n")
            except Exception:
                self.handleError(record)

    def add_request_id(record):
        record.aws_request_id = request_id
        return True

    def basic_config(**options):
        """Code that sets up logging by itself has its way."""
        if root.handlers == [handler]:
            root.removeHandler(handler)
        plain_config(**options)

    handler = LambdaLoggerHandler()
    handler.addFilter(add_request_id)
    handler.setFormatter(logging.Formatter("[%(levelname)s]\t%(asctime)s.%(msecs)03dZ\t%(aws_request_id)s\t%(message)s",
                                           "%Y-%m-%dT%H:%M:%S"))
    handler.formatter.converter = time.gmtime
    root.addHandler(handler)
    plain_config, logging.basicConfig = logging.basicConfig, basic_config


def display_here(module):
    """IPython is installed, but not what it would show things in."""
    module.display = display
    functions = sys.modules.get("IPython.core.display_functions")
    if functions:
        functions.display = display


def substitute(name):
    """A little of IPython, of what is shown alone."""
    if name not in ("IPython", "IPython.display"):
        return None
    from _frozen_importlib import ModuleSpec
    return ModuleSpec(name, SubstituteLoader, is_package=name == "IPython")


class SubstituteLoader:
    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        if module.__name__ == "IPython":
            module.version_info, module.__version__ = (0, 0, 0, ""), "0"
            module.get_ipython = lambda: None
            __import__("IPython.display")
            return
        for name, method in (("HTML", "html"), ("Markdown", "markdown"), ("Latex", "latex"), ("SVG", "svg"), ("Javascript", "javascript")):
            setattr(module, name, type(name, (Shown,), {"__module__": "IPython.display", "_repr_%s_" % method: Shown.get_data}))
        for kind in (ShownJson, ShownImage, ShownMath, ShownText, ShownFrame):
            kind.__module__ = "IPython.display"
        module.JSON, module.Image, module.Math, module.Pretty, module.IFrame = ShownJson, ShownImage, ShownMath, ShownText, ShownFrame
        module.DisplayObject, module.display = Shown, display
        module.clear_output = lambda wait=False: None
        module.update_display = lambda value, *, display_id=None, **options: display(value, **options)


class Shown:
    """What is given as data, or to be read from a file or an address."""
    mode = "r"

    def __init__(self, data=None, url=None, filename=None, **options):
        if data is None and filename is not None:
            with open(filename, self.mode) as file:
                data = file.read()
        elif data is None and url is not None:
            from urllib.request import urlopen
            with urlopen(url) as answer:
                data = answer.read() if "b" in self.mode else answer.read().decode()
        self.data, self.url, self.filename = data, url, filename

    def get_data(self):
        return self.data


class ShownJson(Shown):
    def _repr_json_(self):
        return loads(self.data) if isinstance(self.data, str) else self.data


class ShownMath(Shown):
    def _repr_latex_(self):
        return "$\\displaystyle %s$" % self.data.strip("$")


class ShownText(Shown):
    def __repr__(self):
        return self.data


class ShownImage(Shown):
    mode = "rb"

    def __init__(self, data=None, url=None, filename=None, **options):
        if isinstance(data, str):  # a name or an address may stand in the first place
            url, filename, data = (data, filename, None) if "://" in data else (url, data, None)
        Shown.__init__(self, data, url, filename)

    def _repr_mimebundle_(self, include=None, exclude=None):
        kind = "png" if self.data[:4] == b"\x89PNG" else "gif" if self.data[:4] == b"GIF8" else "webp" if self.data[8:12] == b"WEBP" else "jpeg"
        return {"image/" + kind: self.data}


class ShownFrame:
    def __init__(self, src, width="100%", height=400, **options):
        self.src, self.width, self.height = src, width, height

    def _repr_html_(self):
        from html import escape
        return '<iframe width="%s" height="%s" src="%s" frameborder="0" allowfullscreen></iframe>' % (
            self.width, self.height, escape(str(self.src)))


# --- contexts ---

OUTPUTS = "/workspace/outputs"
OUTPUTS_MAX = 1000  # entries that are looked at


def write_files(request):
    """Files that come with a request, before its code runs."""
    import binascii
    given = [(path, text.encode("utf-8", "surrogatepass")) for path, text in (request.get("files") or {}).items()]
    given += [(path, binascii.a2b_base64(text)) for path, text in (request.get("files_base64") or {}).items()]
    for path, data in given:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)


def serve(request):
    """Runs one request after another in one namespace. What is needed later is looked up now."""
    global MARK
    import _signal, resource
    module = type(sys)("__main__")
    module.display = display
    module.__builtins__ = builtins
    sys.modules["__main__"] = module
    sys.argv = [""]
    sys.path[0] = ""
    builtins.input = no_input
    builtins.__shell__, builtins.__magic__ = shell, magic
    fstat, dup2, scandir, environ = os.fstat, os.dup2, os.scandir, os.environ
    getsignal, signal, SIGINT = _signal.getsignal, _signal.signal, _signal.SIGINT
    usage, process_time, wall = resource.getrusage, time.process_time, time.time
    # Requests come on a descriptor that no child gets; standard input is empty.
    channel = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    dup2(null, 0)
    os.close(null)
    streams = [(at, os.dup(at), fstat(at).st_ino, getattr(sys, name), name) for at, name in ((1, "stdout"), (2, "stderr"))]
    state = {"runs": False}
    count = 0

    def on_interrupt(*_):
        if state["runs"]:
            raise KeyboardInterrupt

    def restore_streams():
        """Output that an execution closed or replaced is there again for the next."""
        for at, copy, inode, stream, name in streams:
            try:
                same = fstat(at).st_ino == inode
            except OSError:
                same = False
            if not same:
                dup2(copy, at)
            if stream.closed:
                stream = open(at, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
                streams[at - 1] = (at, copy, inode, stream, name)
            if getattr(sys, name, None) is not stream:
                setattr(sys, name, stream)

    def changed_outputs(since):
        places, left = [OUTPUTS], OUTPUTS_MAX
        try:
            while places:
                for entry in scandir(places.pop()):
                    left -= 1
                    if left < 0:
                        return True
                    if entry.is_dir(follow_symlinks=False):
                        places.append(entry.path)
                    elif entry.stat(follow_symlinks=False).st_ctime >= since:
                        return True
        except OSError:
            pass
        return False

    def run_cell(request):
        code, file = request.get("code"), "cell %d" % count
        write_files(request)
        if code is None:
            code, file = load(request)
        tree = parse_cell(code, file)
        is_quiet = ends_quietly(tree, SOURCES[file])
        value = run_tree(tree, file, module.__dict__)
        if value is not None:
            module.__dict__["_"] = value
        if is_quiet:
            show_figures()
            return
        give(value)
        show_figures(value)

    def run_guarded(request):
        """An interrupt may come at any moment until it says that nothing runs; then it is too late for it."""
        failure = None
        try:
            try:
                state["runs"] = True
                run_cell(request)
                state["runs"] = False
            except BaseException as thrown:
                state["runs"] = False
                failure = thrown
        except BaseException as thrown:
            state["runs"] = False
            failure = thrown
        if failure is not None:
            send_error(failure)

    MARK = request["id"] + " "
    put_line('\n%s{"done":{}}\n' % MARK)
    while True:
        request = receive(channel)
        if not request:
            return
        count += 1
        MARK = request["id"] + " "
        since, before = wall() - 0.02, process_time()
        restore_streams()
        if getsignal(SIGINT) is not on_interrupt:
            signal(SIGINT, on_interrupt)
        given = request.get("env") or {}
        kept = {name: environ.get(name) for name in given}
        environ.update(given)
        run_guarded(request)
        for name, value in kept.items():
            if value is None:
                environ.pop(name, None)
            else:
                environ[name] = value
        flush()
        spent = usage(0)
        put_line('\n%s{"done":{"cpu_us":%d,"memory":%d,"outputs":%s}}\n' % (
            MARK, (process_time() - before) * 1000000, spent.ru_maxrss * 1024, "true" if changed_outputs(since) else "false"))


def no_input(prompt=""):
    raise EOFError("input() is not available: there is nobody to answer")


# --- what people type in notebooks ---

def parse_cell(code, file):
    """Python as it stands; if it is none, with lines of `!command` and `%magic`."""
    try:
        return parse(code, file)
    except SyntaxError:
        text = code.decode("utf-8", "replace") if isinstance(code, bytes) else code
        changed = translate(text)
        if changed == text:
            raise
    return parse(changed, file)


def ends_quietly(tree, code):
    """Whether a semicolon follows its last expression: its value is not to be shown."""
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, _ast.Expr):
        return False
    lines = (code if isinstance(code, bytes) else code.encode("utf-8", "replace")).split(b"\n")
    rest = lines[last.end_lineno - 1][last.end_col_offset:] if last.end_lineno <= len(lines) else b""
    return rest.strip().startswith(b";")


def translate(code):
    if code.lstrip().startswith("%%"):
        head, _, body = code.lstrip().partition("\n")
        return "__magic__(%r, %r)" % (head[2:], body)
    return "\n".join(map(translate_line, code.split("\n")))


def translate_line(line):
    bare = line.lstrip()
    indent = line[:len(line) - len(bare)]
    if bare.startswith("!"):
        return "%s__shell__(%r)" % (indent, bare[1:])
    if bare.startswith("%") and bare[1:2].isalpha():
        return "%s__magic__(%r)" % (indent, bare[1:])
    if bare.rstrip().endswith("?") and bare.rstrip().rstrip("?").replace(".", "_").isidentifier():
        return "%s__magic__(%r)" % (indent, "pinfo " + bare.rstrip().rstrip("?"))
    name, equals, rest = bare.partition("=")
    rest = rest.lstrip()
    if equals and name.strip().isidentifier() and rest.startswith("!"):
        return "%s%s= __shell__(%r, True)" % (indent, name, rest[1:])
    if equals and name.strip().isidentifier() and rest.startswith("%") and rest[1:2].isalpha():
        return "%s%s= __magic__(%r)" % (indent, name, rest[1:])
    return line


def expand(text, frame):
    """Puts in what Python has for `{expression}` and `$name`; `{{`, `}}` and `$$` stand for one of them. If something
    in braces is no value of Python, they are the shell's, and all is left as it is."""
    import re, string
    scope = {**frame.f_globals, **frame.f_locals}

    def put_name(found):
        doubled, name = found.groups()
        if doubled or name.partition(".")[0] not in scope:
            return "$" + name
        return str(eval(name, scope))

    formatter, parts = string.Formatter(), []
    try:
        for literal, field, form, conversion in formatter.parse(text):
            parts.append(re.sub(r"\$(\$?)([A-Za-z_]\w*(?:\.\w+)*)(?=(?:[^']*'[^']*')*[^']*$)", put_name, literal))
            if field is not None:
                value = eval(field, scope)
                if callable(value):
                    return text  # as in awk '{print}'
                parts.append(formatter.format_field(formatter.convert_field(value, conversion), form))
    except Exception:
        return text
    return "".join(parts)


def shell(command, captures=False, frame=None):
    import subprocess
    command = expand(command, frame or sys._getframe(1))
    flush()
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE if captures else None)
    if "pip" in command:
        find_packages()
    if captures:
        return done.stdout.decode("utf-8", "replace").splitlines()
    if done.returncode:
        print("(exit code %d)" % done.returncode, file=sys.stderr)


def find_packages():
    """What was installed meanwhile: the directory for packages of the user may not have been there at the start."""
    import importlib, site
    place = site.getusersitepackages()
    if site.ENABLE_USER_SITE and place not in sys.path and os.path.isdir(place):
        site.addsitedir(place)
    importlib.invalidate_caches()


def run_program(name, words):
    import subprocess
    flush()
    done = subprocess.run(words)
    if done.returncode:
        raise RuntimeError("%s ended with exit code %d" % (name, done.returncode))


def magic_pip(rest, body, frame):
    import shlex
    try:
        run_program("pip", [sys.executable, "-m", "pip"] + shlex.split(expand(rest, frame)))
    finally:
        find_packages()


def magic_cd(rest, body, frame):
    os.chdir(os.path.expanduser(expand(rest, frame) or "~"))
    print(os.getcwd())


def magic_env(rest, body, frame):
    rest = expand(rest, frame)
    variable, sign, value = rest.partition("=") if "=" in rest else rest.partition(" ")
    if not sign:
        return os.environ[variable] if variable else dict(os.environ)
    os.environ[variable.strip()] = value.strip()
    print("env: %s=%s" % (variable.strip(), value.strip()))


def magic_time(rest, body, frame):
    code = rest if body is None else body
    begun, used = time.time(), process_time()
    value = run_tree(parse_cell(code, "%time"), "%time", frame.f_globals)
    print("CPU time: %.3f s\nWall time: %.3f s" % (process_time() - used, time.time() - begun))
    return value


def magic_timeit(rest, body, frame):
    import timeit
    timer = timeit.Timer(rest if body is None else body, globals=frame.f_globals)
    count = timer.autorange()[0]
    best = min(timer.repeat(5, count)) / count
    unit, size = next((one for one in (("s", 1), ("ms", 1e-3), ("us", 1e-6)) if best >= one[1]), ("ns", 1e-9))
    print("%.3g %s per loop (best of 5 runs of %d loops)" % (best / size, unit, count))


def magic_writefile(rest, body, frame):
    path = rest[2:].strip() if rest.startswith("-a") else rest
    with open(os.path.expanduser(path), "a" if rest.startswith("-a") else "w") as file:
        file.write(body)
    print("wrote " + path)


def magic_pinfo(rest, body, frame):
    import pydoc
    print(pydoc.plain(pydoc.render_doc(eval(rest, frame.f_globals))))


def magic_run(rest, body, frame):
    import runpy, shlex
    words = shlex.split(expand(rest, frame))
    kept, sys.argv = sys.argv, words
    try:
        frame.f_globals.update({name: value for name, value in runpy.run_path(words[0], run_name="__main__").items() if not name.startswith("__")})
    finally:
        sys.argv = kept


# Of a line, and of a whole cell. Those of both have one function.
MAGICS = {"pip": magic_pip, "pip3": magic_pip, "cd": magic_cd, "env": magic_env, "time": magic_time, "timeit": magic_timeit, "run": magic_run,
          "pinfo": magic_pinfo, "pwd": lambda *_: os.getcwd(), "matplotlib": lambda *_: None}
for name in ("ls", "cat", "mkdir", "rm", "cp", "mv"):
    MAGICS[name] = lambda rest, body, frame, name=name: shell(name + " " + rest, frame=frame)
CELL_MAGICS = {"time": magic_time, "timeit": magic_timeit, "writefile": magic_writefile}
for name in ("bash", "sh"):
    CELL_MAGICS[name] = lambda rest, body, frame, name=name: run_program(name, [name, "-c", body])
for name, mime in (("html", "text/html"), ("markdown", "text/markdown"), ("latex", "text/latex"), ("javascript", "application/javascript"),
                   ("svg", "image/svg+xml")):
    CELL_MAGICS[name] = lambda rest, body, frame, mime=mime: show({mime: body, "text/plain": cut_text(body, "results")})


def magic(line, body=None):
    name, _, rest = line.strip().partition(" ")
    known, sign = (MAGICS, "%") if body is None else (CELL_MAGICS, "%%")
    if name.lower() not in known:
        raise NameError("there is no magic %s%s here, but !command and %s" % (sign, name, ", ".join(sign + one for one in sorted(known) if one != "pinfo")))
    return known[name.lower()](rest.strip(), body, sys._getframe(1))
