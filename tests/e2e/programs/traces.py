# SPDX-License-Identifier: Apache-2.0
# Leaves a word wherever a program may leave one (`leave`), or says where that word is found (`look`): kind -> places.
# The word comes backwards, so that this program itself is none of the places.
import ctypes, json, mmap, os, platform, socket, subprocess, sys, threading

MODE, WORD = sys.argv[1], sys.argv[2][::-1]
BYTES = WORD.encode()
KEY = 0x5a5a17
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.mq_send.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint]
ADD_KEY, REQUEST_KEY, KEYCTL = {"x86_64": (248, 249, 250), "aarch64": (217, 218, 219)}[platform.machine()]
FILES = ["/workspace", "/workspace/outputs", "/workspace/agent_workspace", "/tmp", "/var/tmp", "/dev/shm", "/run", "/root", "/home/sandbox", "/opt", "/etc", "/usr/local", "/var/lib", "/volumes"]
TREES = ["/workspace", "/tmp", "/var", "/dev/shm", "/dev/mqueue", "/run", "/root", "/home", "/opt", "/srv", "/mnt", "/media", "/etc", "/usr/local", "/volumes"]


def leave():
    left = {}
    left["files"] = []
    for directory in FILES:
        try:
            with open(directory + "/trace-" + WORD, "w") as file:
                file.write(WORD)
            left["files"].append(directory)
        except OSError:
            pass
    os.setxattr("/workspace/trace-" + WORD, "user.trace", BYTES)
    shm = libc.shmget(KEY, 4096, 0o1666)
    address = libc.shmat(shm, None, 0)
    ctypes.memmove(address, BYTES, len(BYTES))
    queue = libc.msgget(KEY, 0o1666)
    message = ctypes.create_string_buffer(8 + len(BYTES))
    message.raw = (1).to_bytes(8, sys.byteorder) + BYTES
    left["system_v"] = [shm >= 0, libc.msgsnd(queue, message, len(BYTES), 0) == 0, libc.semctl(libc.semget(KEY, 1, 0o1666), 0, 16, 77) == 0]
    posix = libc.mq_open(b"/trace", os.O_CREAT | os.O_RDWR, 0o666, None)
    left["message_queue"] = posix >= 0 and libc.mq_send(posix, BYTES, len(BYTES), 0) == 0
    # -2, -3, -4 and -5: the keyrings of the process, its session, its user and the session of its user
    left["keys"] = [libc.syscall(ADD_KEY, b"user", b"trace", BYTES, len(BYTES), ring) > 0 for ring in (-2, -3, -4, -5)]
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind("\0trace-" + WORD)
    server = socket.create_server(("127.0.0.1", 8765))

    def serve():
        while True:
            connection, _ = server.accept()
            connection.sendall(BYTES)
            connection.close()
    threading.Thread(target=serve, daemon=True).start()
    child = subprocess.Popen(["sleep", "86400"], env={"TRACE": WORD, "PATH": os.environ["PATH"]})
    named = subprocess.Popen(["sh", "-c", "sleep 86400; : " + WORD])
    unlinked = open("/tmp/unlinked", "w+")
    os.unlink("/tmp/unlinked")
    unlinked.write(WORD * 4096)
    unlinked.flush()
    left["processes"] = [child.pid > 0, named.pid > 0]
    print(json.dumps(left), flush=True)
    print("printed " + WORD, flush=True)
    threading.Event().wait()


def in_files(found):
    for top in TREES:
        for directory, directories, files in os.walk(top):
            for name in directories + files:
                path = os.path.join(directory, name)
                if WORD in name:
                    found("files", path)
                if name in directories or not os.path.isfile(path):
                    continue
                try:
                    with open(path, "rb") as file:
                        if BYTES in file.read(1 << 20):
                            found("files", path)
                    for attribute in os.listxattr(path):
                        if BYTES in os.getxattr(path, attribute):
                            found("attributes", path)
                except OSError:
                    pass


def in_processes(found):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid():
            continue  # its environment is looked at by itself
        for name in ("cmdline", "environ", "comm"):
            try:
                with open("/proc/%s/%s" % (pid, name), "rb") as file:
                    if BYTES in file.read():
                        found("process " + name, pid)
            except OSError:
                pass
        try:
            names = ["/proc/%s/fd/%s" % (pid, fd) for fd in os.listdir("/proc/%s/fd" % pid)]
            for name in filter(os.path.isfile, names):
                with open(name, "rb") as file:
                    if BYTES in file.read(1 << 20):
                        found("descriptors", pid)
        except OSError:
            pass


def in_ipc(found):
    for kind in ("shm", "msg", "sem"):
        with open("/proc/sysvipc/" + kind) as file:
            if len(file.readlines()) > 1:
                found("system v " + kind, "/proc/sysvipc")
    shm = libc.shmget(KEY, 0, 0)
    if shm >= 0 and BYTES in ctypes.string_at(libc.shmat(shm, None, 0o10000), 4096):
        found("system v shm", "its memory")
    if libc.mq_open(b"/trace", os.O_RDONLY) >= 0:
        found("message queue", "/trace")
    if libc.syscall(REQUEST_KEY, b"user", b"trace", None, 0) > 0 or libc.syscall(KEYCTL, 10, -5, b"user", b"trace", 0) > 0:
        found("keys", "trace")
    for name in ("/proc/keys", "/proc/net/unix"):
        try:
            with open(name, "rb") as file:
                text = file.read()
            if BYTES in text or "keys" in name and b"trace" in text:
                found("sockets" if "unix" in name else "keys", name)
        except OSError:
            pass
    try:
        with socket.create_connection(("127.0.0.1", 8765), 2) as connection:
            found("port", connection.recv(64).decode())
    except OSError:
        pass


def in_memory(found):
    """Memory and room on the disk that nobody wrote to must not have what somebody wrote there before."""
    if BYTES in mmap.mmap(-1, 32 << 20):
        found("memory", "fresh pages")
    with open("/tmp/fresh", "wb+") as file:
        os.posix_fallocate(file.fileno(), 0, 32 << 20)
        if BYTES in file.read():
            found("disk", "fresh blocks")
    os.unlink("/tmp/fresh")


def look():
    places = {}

    def found(kind, place):
        places.setdefault(kind, []).append(place)
    for search in (in_files, in_processes, in_ipc, in_memory):
        search(found)
    if WORD in socket.gethostname() + json.dumps(dict(os.environ)):
        found("environment", socket.gethostname())
    print(json.dumps(places))


leave() if MODE == "leave" else look()
