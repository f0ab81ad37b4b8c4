#!/usr/bin/python3
"""Writes valid.json and invalid.json: the golden frames of the guest channel (protocols/channel.md).

An encoder of its own, so that the vectors do not repeat a fault of the C++ one. Deterministic; `--check` compares with
the files that are there and writes nothing. Changing a vector is changing the protocol.
"""

import hashlib
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
A = "a1" * 16
S = "5e" * 16
D = "0123456789abcdef" * 4
MAX_PAYLOAD = 32768
BULK = 2**30
WIRE = 2**53
HOURS4 = 14400000
BUDGET = {"untimed_bound_ms": HOURS4}


# ---- bytes ----


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def frame(kind, payload, length=None):
    size = len(payload) if length is None else length
    return size.to_bytes(4, "big") + kind.encode() + payload


def end_payload(bulk):
    return canonical({"sha256": hashlib.sha256(bulk).hexdigest(), "size": len(bulk)})


def data_frames(bulk):
    return [frame("D", bulk[i : i + MAX_PAYLOAD]) for i in range(0, len(bulk), MAX_PAYLOAD)]


def bulk_frames(bulk):
    return b"".join(data_frames(bulk)) + frame("E", end_payload(bulk))


def encode(message, bulk=None):
    out = frame("C", canonical(message))
    return out if bulk is None else out + bulk_frames(bulk)


# ---- the files: long runs of bytes as repetitions, so that a person can read them ----

PATTERN = bytes(range(64))


def parts(data):
    """A list of hex strings and {"repeat": hex, "times": n} whose concatenation is `data`."""
    out = []
    while True:
        at = data.find(PATTERN * 3)
        if at < 0:
            break
        times = 0
        while data.startswith(PATTERN, at + times * len(PATTERN)):
            times += 1
        if at:
            out.append(data[:at].hex())
        out.append({"repeat": PATTERN.hex(), "times": times})
        data = data[at + times * len(PATTERN) :]
    if data or not out:
        out.append(data.hex())
    return out


VALID = []
INVALID = []
STREAMS = []


def valid(name, message, bulk=None, frames=None):
    """Both directions, unless `frames` gives bytes that a decoder takes though no encoder writes them."""
    entry = {"name": name, "message": message}
    if bulk is not None:
        entry["bulk"] = parts(bulk)
    entry["canonical"] = frames is None
    data = encode(message, bulk) if frames is None else frames
    entry["frames"] = parts(data)
    VALID.append(entry)
    STREAMS.append(data)


def invalid(name, error, data, cap=None):
    entry = {"name": name, "error": error}
    if cap is not None:
        entry["bulk_cap"] = cap
    entry["frames"] = parts(data)
    INVALID.append(entry)
    STREAMS.append(data)


def invalid_payload(name, payload):
    """A CONTROL frame that is refused for its payload; shown as text where it is text."""
    data = payload if isinstance(payload, bytes) else payload.encode()
    entry = {"name": name, "error": "invalid-message"}
    try:
        text = data.decode()
        entry["control"] = text
        if any(ord(c) == 0xFEFF for c in text):
            raise UnicodeError
    except UnicodeError:
        entry.pop("control", None)
        entry["frames"] = parts(frame("C", data))
    INVALID.append(entry)
    STREAMS.append(frame("C", data))


def message(kind, /, **fields):
    return {"id": A, "kind": kind, "v": 3, **fields}


# A legal message of every kind with every field it can have, and the bulk it needs.
def full_messages():
    budget = {"channel_ms": 180000, "command_ms": 5000, "untimed_bound_ms": 600000}
    entry = {"detail": "d", "event": "request", "level": "info", "request_id": A, "ts_ms": 12}
    return {
        "ping": (message("ping"), None),
        "exec": (
            message("exec", budget=budget, cmd=["cat", "-"], cwd="/srv", data_size=5,
                    env={"ANSWER": "42"}, user="postgres"),
            b"stdin",
        ),
        "read_file": (message("read_file", budget=budget, max_bytes=4096, path="/etc/hosts"), None),
        "write_file": (message("write_file", budget=budget, data_size=2, mode=420, path="/t/f"), b"\x00\xff"),
        "forward": (message("forward", budget=budget, host="10.0.0.1", port=443), None),
        "poll": (message("poll", target_id=S), None),
        "ack": (message("ack", target_id=S), None),
        "diag": (message("diag", max_entries=7), None),
        "pong": (message("pong", daemon="cordond 1", protocol=3, session=S), None),
        "exec_result": (
            message("exec_result", data_size=5, rc=1, stderr_size=3, stderr_truncated=True,
                    stdout_size=2, stdout_truncated=True),
            b"outer"[:5],
        ),
        "file_data": (message("file_data", data_size=3, size=3, truncated=True), b"\x00\xffz"),
        "ok": (message("ok"), None),
        "pending": (message("pending", elapsed_ms=1500, target_id=S), None),
        "forward_ok": (message("forward_ok", handle=S), None),
        "diag_result": (message("diag_result", entries=[entry], listener_restarts=2), None),
        "error": (message("error", errno="ETIME", layer="command", message="m", partial="x"), None),
        "realize": (message("realize", bundle_digest=D, grants=["g"]), None),
        "teardown": (message("teardown"), None),
        "stage": (message("stage", detail="d", guests={"g": "booting"}, stage="boot"), None),
        "heartbeat": (message("heartbeat", guests={"g": "ready"}, uptime_ms=99), None),
    }


def without(fields, *names):
    return {k: v for k, v in fields.items() if k not in names}


def make_valid():
    full = full_messages()
    for kind, (fields, bulk) in full.items():
        valid(f"{kind}-every-field", fields, bulk)

    def execute(**fields):
        return message("exec", **{"budget": BUDGET, "cmd": ["true"], "env": {}, **fields})

    valid("exec-least", execute())
    valid("exec-cwd", execute(cwd="relative/dir"))
    valid("exec-cwd-empty", execute(cwd=""))
    valid("exec-user", execute(user="root"))
    valid("exec-env-empty-value", execute(env={"EMPTY": "", "": "empty name"}))
    valid("exec-empty-argument", execute(cmd=["printf", "", ""]))
    valid("exec-empty-argv0", execute(cmd=[""]))
    valid("exec-stdin-empty", execute(data_size=0), b"")
    valid("exec-stdin-two-chunks", execute(data_size=40000), PATTERN * 625)
    valid("exec-stdin-exactly-one-chunk", execute(data_size=MAX_PAYLOAD), PATTERN * 512)
    valid("exec-stdin-one-chunk-and-a-byte", execute(data_size=MAX_PAYLOAD + 1), PATTERN * 512 + b"!")
    valid("exec-escapes", execute(cmd=['"\\/\b\f\n\r\t\x01\x1f\x7f<&>\u2028é\U0001f600']))
    valid("exec-every-control-character", execute(cmd=["".join(chr(c) for c in range(1, 0x21))]))
    valid("exec-unicode-argv", execute(cmd=["écho", "grüße", "日本語", "\U0001f600", "\u2029", "\ufeff", "\uffff", "\U0010ffff"]))
    valid("exec-env-order", execute(env={"\U0001f600": "5", "\uff5e": "4", "é": "3", "a": "2", "Z": "1", "A\"": "0"}))
    valid("exec-budget-command", execute(budget={"command_ms": 1, "untimed_bound_ms": HOURS4}))
    valid("exec-budget-command-most", execute(budget={"command_ms": HOURS4, "untimed_bound_ms": HOURS4}))
    valid("exec-budget-command-equals-bound", execute(budget={"command_ms": 7, "untimed_bound_ms": 7}))
    valid("exec-budget-channel", execute(budget={"channel_ms": 1, "untimed_bound_ms": HOURS4}))
    valid("exec-budget-most", execute(budget={"channel_ms": WIRE, "untimed_bound_ms": WIRE}))
    valid("exec-budget-least", execute(budget={"channel_ms": 1, "command_ms": 1, "untimed_bound_ms": 1}))
    room = MAX_PAYLOAD - len(canonical(execute(cmd=[""])))
    valid("exec-fills-the-control-frame", execute(cmd=[(PATTERN[32:] * (room // 32 + 1)).decode().replace('"', "x").replace("\\", "x")[:room]]))

    valid("read_file-least", message("read_file", budget=BUDGET, path="f"))
    valid("read_file-max-bytes-0", message("read_file", budget=BUDGET, max_bytes=0, path="f"))
    valid("read_file-max-bytes-most", message("read_file", budget=BUDGET, max_bytes=BULK, path="f"))
    valid("read_file-unicode-path", message("read_file", budget=BUDGET, path="/tmp/ünïcödé \U0001f4be"))

    def write(bulk, **fields):
        return message("write_file", budget=BUDGET, data_size=len(bulk), path="/t/e", **fields), bulk

    valid("write_file-empty-mode-0600", *write(b"", mode=0o600))
    valid("write_file-no-mode", *write(b"abc"))
    valid("write_file-mode-0", *write(b"abc", mode=0))
    valid("write_file-mode-7777", *write(b"abc", mode=0o7777))
    valid("write_file-two-chunks", *write(PATTERN * 625))

    valid("forward-port-1", message("forward", budget=BUDGET, host="h", port=1))
    valid("forward-port-65535", message("forward", budget=BUDGET, host="h", port=65535))
    valid("diag-default", message("diag", max_entries=100))
    valid("diag-least", message("diag", max_entries=1))
    valid("diag-most", message("diag", max_entries=1000))

    valid("pong-daemon-empty", message("pong", daemon="", protocol=3, session=S))
    valid("pong-daemon-longest", message("pong", daemon="\U0001f600" * 128, protocol=3, session=S))

    def result(rc=0, out=b"", err=b"", **fields):
        return message("exec_result", **{
            "rc": rc, "stderr_size": len(err), "stderr_truncated": False, "stdout_size": len(out),
            "stdout_truncated": False, **fields})

    valid("exec_result-signal-9", result(rc=-9))
    valid("exec_result-rc-least", result(rc=-(2**31)))
    valid("exec_result-rc-most", result(rc=2**31 - 1))
    valid("exec_result-empty-but-declared", result(data_size=0), b"")
    valid("exec_result-stdout-only", result(out=b"hi\n", data_size=3), b"hi\n")
    valid("exec_result-stderr-only", result(rc=127, err=b"no\n", data_size=3), b"no\n")
    valid("exec_result-two-chunks", result(out=PATTERN * 500, err=PATTERN * 125, data_size=40000, stdout_truncated=True), PATTERN * 625)
    valid("file_data-empty", message("file_data", size=0, truncated=False))
    valid("file_data-empty-but-declared", message("file_data", data_size=0, size=0, truncated=False), b"")
    valid("file_data-empty-truncated", message("file_data", size=0, truncated=True))
    valid("file_data-two-chunks", message("file_data", data_size=40000, size=40000, truncated=False), PATTERN * 625)
    valid("pending-at-once", message("pending", elapsed_ms=0, target_id=S))
    valid("pending-longest", message("pending", elapsed_ms=WIRE, target_id=S))

    valid("diag_result-empty", message("diag_result", entries=[], listener_restarts=0))
    valid("diag_result-restarts-most", message("diag_result", entries=[], listener_restarts=WIRE))
    for level in ("info", "warn", "error"):
        entry = {"detail": "", "event": "e", "level": level, "ts_ms": 0}
        valid(f"diag_result-{level}", message("diag_result", entries=[entry], listener_restarts=0))
    longest = {"detail": "é" * 2048, "event": "é" * 128, "level": "info", "request_id": "é" * 64, "ts_ms": WIRE}
    short = {"detail": "", "event": "e", "level": "warn", "request_id": "", "ts_ms": 1}
    valid("diag_result-longest-texts", message("diag_result", entries=[longest, short], listener_restarts=1))

    for errno in ("ENOENT", "E2BIG", "EX", "EABCDEFGHIJ12345"):
        valid(f"error-{errno}", message("error", errno=errno, message="no such file"))
    valid("error-empty-text", message("error", errno="EIO", message=""))
    valid("error-longest-texts", message("error", errno="ETIME", layer="command", message="é" * 4096, partial="\U0001f600" * 4096))
    for layer in ("command", "channel", "untimed", "transport"):
        valid(f"error-ETIMEDOUT-{layer}", message("error", errno="ETIMEDOUT", layer=layer, message="m"))
    valid("error-layer-of-another-errno", message("error", errno="EIO", layer="channel", message="m"))
    valid("error-empty-partial", message("error", errno="ETIMEDOUT", layer="command", message="m", partial=""))

    valid("realize-no-grants", message("realize", bundle_digest=D, grants=[]))
    valid("realize-64-grants", message("realize", bundle_digest=D, grants=[f"grant-{i}" for i in range(64)]))
    for stage in ("fetch", "construct", "boot", "verify", "ready", "failed"):
        valid(f"stage-{stage}", message("stage", detail="", guests={}, stage=stage))
    valid("stage-longest-detail", message("stage", detail="é" * 4096, guests={}, stage="failed"))
    states = {"d": "pending", "c": "booting", "b": "ready", "a": "failed"}
    valid("stage-every-state", message("stage", detail="", guests=states, stage="boot"))
    valid("heartbeat-every-state", message("heartbeat", guests=states, uptime_ms=0))
    valid("heartbeat-longest", message("heartbeat", guests={}, uptime_ms=WIRE))

    # What a decoder takes though no encoder writes it.
    def accepted(name, fields, payload, bulk=None, bulk_bytes=b""):
        valid(f"accepted-{name}", fields, bulk, frame("C", payload.encode()) + bulk_bytes)

    ping = message("ping")
    accepted("white-space", ping, f' \t\r\n{{ "v" :\t3 ,\n"kind":\r"ping", "id" : "{A}" }} \n')
    accepted("escaped-keys-and-text", ping, f'{{"\\u0069d":"{A}","k\\u0069nd":"p\\u0069ng","v":3}}')
    accepted("escapes-no-encoder-writes", execute(cmd=["/é\U0001f600\x7f"]),
             f'{{"cmd":["\\/\\u00E9\\ud83d\\uDE00\\u007f"],"id":"{A}","kind":"exec","v":3}}')
    accepted("exec-without-defaults", execute(), f'{{"cmd":["true"],"id":"{A}","kind":"exec","v":3}}')
    accepted("exec-empty-budget", execute(), f'{{"budget":{{}},"cmd":["true"],"id":"{A}","kind":"exec","v":3}}')
    accepted("read_file-without-defaults", message("read_file", budget=BUDGET, path="f"), f'{{"id":"{A}","kind":"read_file","path":"f","v":3}}')
    accepted("forward-without-defaults", message("forward", budget=BUDGET, host="h", port=1), f'{{"host":"h","id":"{A}","kind":"forward","port":1,"v":3}}')
    accepted("write_file-without-defaults", write(b"")[0], f'{{"data_size":0,"id":"{A}","kind":"write_file","path":"/t/e","v":3}}', b"", bulk_frames(b""))
    accepted("diag-without-defaults", message("diag", max_entries=100), f'{{"id":"{A}","kind":"diag","v":3}}')
    accepted("pong-without-defaults", message("pong", daemon="d", protocol=3, session=S), f'{{"daemon":"d","id":"{A}","kind":"pong","session":"{S}","v":3}}')
    accepted("exec_result-without-defaults", result(), f'{{"id":"{A}","kind":"exec_result","rc":0,"stderr_size":0,"stdout_size":0,"v":3}}')
    accepted("file_data-without-defaults", message("file_data", size=0, truncated=False), f'{{"id":"{A}","kind":"file_data","size":0,"v":3}}')
    accepted("diag_result-without-defaults", message("diag_result", entries=[{"detail": "", "event": "e", "level": "info", "ts_ms": 0}], listener_restarts=0),
             f'{{"entries":[{{"event":"e","level":"info","ts_ms":0}}],"id":"{A}","kind":"diag_result","v":3}}')
    accepted("realize-without-defaults", message("realize", bundle_digest=D, grants=[]), f'{{"bundle_digest":"{D}","id":"{A}","kind":"realize","v":3}}')
    accepted("stage-without-defaults", message("stage", detail="", guests={}, stage="boot"), f'{{"id":"{A}","kind":"stage","stage":"boot","v":3}}')
    accepted("heartbeat-without-defaults", message("heartbeat", guests={}, uptime_ms=0), f'{{"id":"{A}","kind":"heartbeat","uptime_ms":0,"v":3}}')
    data = message("file_data", data_size=3, size=3, truncated=False)
    head = frame("C", canonical(data))
    empty = frame("D", b"")
    bulk_end = frame("E", end_payload(b"abc"))
    valid("accepted-bulk-a-byte-a-frame", data, b"abc", head + b"".join(frame("D", bytes([b])) for b in b"abc") + bulk_end)
    valid("accepted-16-empty-data-frames", data, b"abc", head + empty * 8 + frame("D", b"abc") + empty * 8 + bulk_end)
    spaced = json.dumps({"size": 3, "sha256": hashlib.sha256(b"abc").hexdigest()}, indent=1).encode()
    valid("accepted-end-in-other-order", data, b"abc", head + frame("D", b"abc") + frame("E", spaced))


# For every kind: its fields, as (name, how it is refused).
HEX32 = [A[:-1], A + "0", A.upper(), "g" + A[1:], A + "\n", "", " " + A[1:]]
NUMBER_AS = ['"1"', "1.0", "1e0", "-0", "true", "[1]", "{}", "18446744073709551616", "1e400", "01", "0x1", "+1", "NaN", "Infinity"]
TEXT_AS = ["1", "true", '["a"]', '{"a":"a"}', '"\\u0000"', '"\\ud800"', '"\\udc00\\ud800"']
FLAG_AS = ["0", "1", '"true"', "[]", "TRUE"]


class Raw(str):
    """A JSON value given by its text, legal JSON or not."""


def dump(value):
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{dump(v)}" for k, v in sorted(value.items())) + "}"
    if isinstance(value, list):
        return "[" + ",".join(dump(v) for v in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def replaced(fields, path, value):
    if not path:
        return value
    copy = list(fields) if isinstance(fields, list) else dict(fields)
    copy[path[0]] = replaced(copy[path[0]], path[1:], value)
    return copy


def make_invalid():
    full = full_messages()

    def lie(name, kind, path, value):
        invalid_payload(name, dump(replaced(full[kind][0], path, value)))

    # Every field of every kind, at every depth: null, another type, and (once a type) every way of getting it wrong.
    thorough = {"target_id", "port", "mode", "stdout_truncated", "host"}

    def visit(kind, path, value):
        name = "-".join([kind, *(str(p) for p in path)])
        if path:
            lie(f"{name}-null", kind, path, None)
        if isinstance(value, bool):
            wrong = FLAG_AS
        elif isinstance(value, int):
            wrong = NUMBER_AS
        elif isinstance(value, str):
            wrong = TEXT_AS
        elif isinstance(value, list):
            wrong = ["{}", '"a"', "1"]
        else:
            wrong = ["[]", '"a"', "1"]
        if path:
            for text in wrong if path[-1] in thorough else wrong[:3]:
                lie(f"{name}-as-{text}", kind, path, Raw(text))
        if isinstance(value, dict):
            for key, member in value.items():
                visit(kind, [*path, key], member)
            if path[-1:] not in (["env"], ["guests"]):
                unknown = dump(replaced(full[kind][0], path, {**value, "zz": 1}))
                invalid_payload(f"{name}-unknown-key", unknown)
            first = next(iter(sorted(value)))
            doubled = "{" + f"{json.dumps(first)}:{dump(value[first])}," + dump(value)[1:]
            invalid_payload(f"{name}-duplicate-key", dump(replaced(full[kind][0], path, Raw(doubled))))
            spelt = "{" + f'"\\u{ord(first[0]):04x}{first[1:]}":{dump(value[first])},' + dump(value)[1:]
            invalid_payload(f"{name}-duplicate-key-by-escape", dump(replaced(full[kind][0], path, Raw(spelt))))
        elif isinstance(value, list):
            for i, element in enumerate(value[:1]):
                visit(kind, [*path, i], element)

    for kind, (fields, _) in full.items():
        visit(kind, [], fields)
        if "data_size" not in fields:
            lie(f"{kind}-data_size", kind, [], {**fields, "data_size": 0})

    # Every required field.
    required = {
        "exec": ["cmd"],
        "read_file": ["path"],
        "write_file": ["path", "data_size"],
        "forward": ["host", "port"],
        "poll": ["target_id"],
        "ack": ["target_id"],
        "pong": ["daemon", "session"],
        "exec_result": ["rc", "stdout_size", "stderr_size"],
        "file_data": ["size"],
        "pending": ["target_id", "elapsed_ms"],
        "forward_ok": ["handle"],
        "diag_result": ["entries"],
        "error": ["errno", "message"],
        "realize": ["bundle_digest"],
        "stage": ["stage"],
        "heartbeat": ["uptime_ms"],
    }
    for kind, names in required.items():
        for name in names:
            invalid_payload(f"{kind}-without-{name}", dump(without(full[kind][0], name)))
    for name in ("id", "kind", "v"):
        invalid_payload(f"ping-without-{name}", dump(without(full["ping"][0], name)))
    for name in ("event", "level", "ts_ms"):
        entry = without(full["diag_result"][0]["entries"][0], name)
        lie(f"diag_result-entry-without-{name}", "diag_result", ["entries"], [entry])

    # Every bound, just outside.
    for kind, path, low, high in [
        ("ping", ["v"], 2, 4),
        ("exec", ["budget", "command_ms"], 0, HOURS4 + 1),
        ("exec", ["budget", "channel_ms"], 0, WIRE + 1),
        ("exec", ["budget", "untimed_bound_ms"], 0, WIRE + 1),
        ("exec", ["data_size"], -1, BULK + 1),
        ("read_file", ["max_bytes"], -1, BULK + 1),
        ("write_file", ["mode"], -1, 4096),
        ("write_file", ["data_size"], -1, BULK + 1),
        ("forward", ["port"], 0, 65536),
        ("diag", ["max_entries"], 0, 1001),
        ("pong", ["protocol"], 2, 4),
        ("exec_result", ["rc"], -(2**31) - 1, 2**31),
        ("exec_result", ["stdout_size"], -1, BULK + 1),
        ("exec_result", ["stderr_size"], -1, BULK + 1),
        ("file_data", ["size"], -1, BULK + 1),
        ("pending", ["elapsed_ms"], -1, WIRE + 1),
        ("diag_result", ["listener_restarts"], -1, WIRE + 1),
        ("diag_result", ["entries", 0, "ts_ms"], -1, WIRE + 1),
        ("heartbeat", ["uptime_ms"], -1, WIRE + 1),
    ]:
        name = "-".join([kind, *(str(p) for p in path)])
        lie(f"{name}-{low}", kind, path, low)
        lie(f"{name}-{high}", kind, path, high)
        lie(f"{name}-2^64-and-a-legal-value", kind, path, 2**64 + 3)
    for kind, path, longest in [
        ("pong", ["daemon"], 128),
        ("error", ["message"], 4096),
        ("error", ["partial"], 4096),
        ("stage", ["detail"], 4096),
        ("diag_result", ["entries", 0, "event"], 128),
        ("diag_result", ["entries", 0, "request_id"], 64),
        ("diag_result", ["entries", 0, "detail"], 2048),
    ]:
        lie("-".join([kind, *(str(p) for p in path), "too-long"]), kind, path, "é" * (longest + 1))
    for kind, path in [("read_file", ["path"]), ("write_file", ["path"]), ("forward", ["host"]),
                       ("diag_result", ["entries", 0, "event"])]:
        lie("-".join([kind, *(str(p) for p in path), "empty"]), kind, path, "")
    lie("exec-cmd-empty", "exec", ["cmd"], [])
    lie("realize-65-grants", "realize", ["grants"], ["g"] * 65)
    least = {"event": "e", "level": "info", "ts_ms": 0}
    too_many = frame("C", dump(message("diag_result", entries=[least] * 1001)).encode())
    invalid("diag_result-1001-entries-do-not-fit-a-frame", "frame-too-large", too_many[:5])

    # Shapes.
    for kind, path in [("ping", ["id"]), ("poll", ["target_id"]), ("pong", ["session"]), ("forward_ok", ["handle"])]:
        for value in HEX32:
            lie(f"{kind}-{path[0]}-{value!r}", kind, path, value)
    for value in (D[:-1], D + "0", D.upper(), D + "\n", "z" * 64):
        lie(f"realize-bundle_digest-{value!r}", "realize", ["bundle_digest"], value)
    for value in ("", "E", "eio", "Eio", "1EIO", "E_IO", "EIO\n", "EABCDEFGHIJKLMNOP", "ÉIO", " EIO"):
        timeless = {**without(full["error"][0], "layer", "partial"), "errno": value}
        lie(f"error-errno-{value!r}", "error", [], timeless)
    for kind, path, values in [
        ("error", ["layer"], ["", "Command", "kernel", "command ", "commandx"]),
        ("stage", ["stage"], ["", "Boot", "done", "boot\n"]),
        ("stage", ["guests", "g"], ["", "up", "READY"]),
        ("heartbeat", ["guests", "g"], ["", "up", "READY"]),
        ("diag_result", ["entries", 0, "level"], ["", "debug", "Info"]),
        ("ping", ["kind"], ["", "Ping", "ping ", "backdoor", "exec_results", "pin"]),
    ]:
        for value in values:
            lie("-".join([kind, *(str(p) for p in path), repr(value)]), kind, path, value)
    for key in ("Budget", "CMD", "cmd ", "dataSize", "data-size", "timeout"):
        lie(f"exec-unknown-{key}", "exec", [], {**full["exec"][0], key: 1})

    # Rules across fields.
    lie("exec-command-over-bound", "exec", ["budget"], {"command_ms": 11, "untimed_bound_ms": 10})
    lie("read_file-command-over-bound", "read_file", ["budget"], {"command_ms": 600001, "untimed_bound_ms": 600000})
    lie("write_file-command-over-bound", "write_file", ["budget"], {"command_ms": 2, "untimed_bound_ms": 1})
    lie("forward-command-over-bound", "forward", ["budget"], {"command_ms": 2, "untimed_bound_ms": 1})
    result = full["exec_result"][0]
    lie("exec_result-sizes-over-data_size", "exec_result", ["data_size"], 4)
    lie("exec_result-sizes-under-data_size", "exec_result", ["data_size"], 6)
    lie("exec_result-sizes-without-data_size", "exec_result", [], without(result, "data_size"))
    lie("exec_result-sizes-2^30-each", "exec_result", [], {**result, "stdout_size": BULK, "stderr_size": BULK, "data_size": 0})
    lie("file_data-size-over-data_size", "file_data", ["size"], 4)
    lie("file_data-size-without-data_size", "file_data", [], without(full["file_data"][0], "data_size"))
    lie("file_data-data_size-without-content", "file_data", ["size"], 0)
    for errno in ("ETIME", "ETIMEDOUT"):
        lie(f"error-{errno}-without-layer", "error", [], message("error", errno=errno, message="m"))
        lie(f"error-{errno}-partial-without-layer", "error", [], message("error", errno=errno, message="m", partial="x"))
    lie("error-partial-of-another-errno", "error", ["errno"], "EIO")
    lie("error-partial-without-a-time-out", "error", [], message("error", errno="ETIM", message="m", partial="x"))

    # What is no JSON text, or more than one.
    ping = canonical(message("ping"))
    invalid_payload("empty-payload", b"")
    invalid_payload("white-space-only", b" \n")
    for name, payload in [
        ("array", b"[" + ping + b"]"), ("array-empty", b"[]"), ("object-empty", b"{}"), ("text", b'"ping"'),
        ("number", b"3"), ("null", b"null"), ("true", b"true"), ("not-json", b"not json"),
        ("byte-order-mark", b"\xef\xbb\xbf" + ping), ("byte-order-mark-after-white-space", b" \xef\xbb\xbf" + ping),
        ("utf-16", ping.decode().encode("utf-16")), ("utf-16-le", ping.decode().encode("utf-16-le")),
        ("utf-32", ping.decode().encode("utf-32-be")),
        ("trailing-text", ping + b"x"), ("trailing-object", ping + ping), ("trailing-comma", ping + b","),
        ("trailing-nul", ping + b"\0"), ("trailing-nul-and-text", ping + b"\0x"), ("leading-nul", b"\0" + ping),
        ("trailing-vertical-tab", ping + b"\x0b"), ("trailing-form-feed", ping + b"\x0c"),
        ("trailing-no-break-space", ping + b"\xc2\xa0"), ("nul-between-members", ping.replace(b",", b",\0", 1)),
        ("comma-at-the-end", ping[:-1] + b",}"), ("comma-missing", ping.replace(b",", b" ", 1)),
        ("colon-missing", ping.replace(b":", b" ", 1)), ("unclosed", ping[:-1]), ("unquoted-key", ping.replace(b'"v"', b"v")),
        ("single-quotes", ping.replace(b'"', b"'")), ("comment", ping[:-1] + b"/*c*/}"), ("line-comment", b"//c\n" + ping),
        ("number-as-key", ping[:-1] + b",1:1}"), ("control-character-in-key", ping.replace(b'"v"', b'"v\x01"')),
    ]:
        invalid_payload(f"json-{name}", payload)
    head, tail = ('{"cmd":["', f'"],"id":"{A}","kind":"exec","v":3}}')
    for name, text in [
        ("raw-newline", b"\n"), ("raw-tab", b"\t"), ("raw-nul", b"\0"), ("raw-unit-separator", b"\x1f"),
        ("bad-escape", b"\\x41"), ("short-escape", b"\\u12"), ("capital-escape", b"\\U0041"), ("escaped-apostrophe", b"\\'"),
        ("nul-escape", b"a\\u0000b"), ("lone-high-surrogate", b"\\ud800"), ("lone-low-surrogate", b"\\udfff"),
        ("high-surrogate-and-letter", b"\\ud800\\u0041"), ("two-high-surrogates", b"\\ud800\\ud800"),
        ("swapped-surrogates", b"\\udc00\\ud800"), ("high-surrogate-cut", b"\\ud800\\"),
        ("continuation-alone", b"\x80"), ("overlong-2", b"\xc0\xaf"), ("overlong-nul", b"\xc0\x80"), ("overlong-3", b"\xe0\x9f\xbf"),
        ("overlong-4", b"\xf0\x8f\xbf\xbf"), ("raw-surrogate", b"\xed\xa0\x80"), ("cesu-8-pair", b"\xed\xa0\xbd\xed\xb8\x80"),
        ("beyond-unicode", b"\xf4\x90\x80\x80"), ("five-bytes", b"\xf8\x88\x80\x80\x80"), ("cut-2", b"\xc3"), ("cut-3", b"\xe2\x82"),
        ("cut-4", b"\xf0\x9f\x98"), ("latin-1", b"caf\xe9"), ("ff", b"\xff"),
    ]:
        invalid_payload(f"text-{name}", head.encode() + text + tail.encode())
    for depth in (16, 17, 10000):
        nested = f'{{"id":"{A}","kind":"ping","v":3,"x":' + "[" * depth
        invalid_payload(f"json-depth-{depth}-unclosed", nested)
        invalid_payload(f"json-depth-{depth}", nested + "]" * depth + "}")
    invalid_payload("json-depth-of-objects", '{"a":' * 5000 + "1" + "}" * 5000)
    invalid_payload("json-depth-before-kind", '{"a":' + "[" * 12000 + "]" * 12000 + f',"id":"{A}","kind":"ping","v":3}}')
    invalid_payload("json-depth-in-cmd", f'{{"cmd":[["a"]],"id":"{A}","kind":"exec","v":3}}')
    invalid_payload("json-kind-twice", f'{{"id":"{A}","kind":"ping","kind":"ok","v":3}}')
    invalid_payload("json-kind-in-a-nested-object", f'{{"budget":{{"kind":"exec"}},"cmd":["a"],"id":"{A}","v":3}}')
    invalid_payload("json-v-of-2", canonical({**message("pong", daemon="d", protocol=3, session=S), "v": 2}))

    # Frames.
    ok = encode(message("ok"))
    data = message("file_data", data_size=3, size=3, truncated=False)
    head = frame("C", canonical(data))
    abc = frame("D", b"abc")
    end = frame("E", end_payload(b"abc"))
    for name, size in [("32769", 32769), ("2^24", 2**24), ("2^31", 2**31), ("2^32-1", 2**32 - 1)]:
        for kind in "CDE":
            invalid(f"frame-{kind}-of-{name}", "frame-too-large", frame(kind, b"", size))
        invalid(f"frame-unknown-of-{name}", "frame-too-large", frame("X", b"", size))
    invalid("frame-garbage", "frame-too-large", b"\xff" * 16)
    invalid("frame-too-large-in-bulk", "frame-too-large", head + frame("D", b"", 32769))
    for kind in "X", "c", "d", "\0", "\x7f":
        invalid(f"frame-type-{ord(kind):02x}", "protocol-violation", frame(kind, b"", 0))
    invalid("frame-type-with-largest-length", "protocol-violation", frame("Z", b"", 32768))
    invalid("frame-type-in-bulk", "protocol-violation", head + frame("X", b"abc"))
    invalid("frame-http", "frame-too-large", b"HTTP/1.1 400 Bad Request\r\n\r\n")
    invalid("frame-data-first", "protocol-violation", abc)
    invalid("frame-data-first-empty", "protocol-violation", frame("D", b""))
    invalid("frame-data-first-payload-to-come", "protocol-violation", abc[:5])
    invalid("frame-end-first", "protocol-violation", end)
    invalid("frame-control-in-bulk", "protocol-violation", head + ok)
    invalid("frame-control-in-bulk-begun", "protocol-violation", head + frame("D", b"a") + ok)
    invalid("frame-control-in-place-of-end", "protocol-violation", head + abc + ok)
    invalid("frame-control-for-empty-bulk", "protocol-violation", frame("C", canonical({**data, "data_size": 0, "size": 0})) + ok)
    invalid("bulk-over-declaration", "protocol-violation", head + frame("D", b"abcd") + end)
    invalid("bulk-over-declaration-later", "protocol-violation", head + abc + frame("D", b"d") + end)
    invalid("bulk-over-declaration-of-0", "protocol-violation", frame("C", canonical({**data, "data_size": 0, "size": 0})) + frame("D", b"a"))
    big = message("file_data", data_size=65536, size=65536, truncated=False)
    invalid("bulk-declared-over-cap", "bulk-overrun", frame("C", canonical(big)), cap=65535)
    invalid("bulk-declared-over-cap-with-bulk", "bulk-overrun", encode(big, PATTERN * 1024), cap=4096)
    invalid("bulk-declared-over-cap-of-0", "bulk-overrun", encode(data, b"abc"), cap=0)
    invalid("bulk-sent-over-cap-and-declaration", "bulk-overrun", head + frame("D", b"abcd"), cap=3)
    invalid("bulk-over-cap-by-default", "bulk-overrun", frame("C", canonical({**data, "data_size": 16777217, "size": 16777217})))
    empty = frame("D", b"")
    invalid("empty-data-17-before", "invalid-message", head + empty * 17)
    invalid("empty-data-17-after", "invalid-message", head + abc + empty * 17 + end)
    invalid("empty-data-17-in-all", "invalid-message", head + empty * 9 + abc + empty * 8 + end)
    invalid("empty-data-of-empty-bulk", "invalid-message", frame("C", canonical({**data, "data_size": 0, "size": 0})) + empty * 17)
    digest = hashlib.sha256(b"abc").hexdigest()
    for name, value in [
        ("size-under", {"sha256": digest, "size": 2}), ("size-over", {"sha256": digest, "size": 4}),
        ("size-0", {"sha256": digest, "size": 0}), ("digest-of-nothing", {"sha256": hashlib.sha256(b"").hexdigest(), "size": 3}),
        ("digest-last-bit", {"sha256": digest[:-1] + ("0" if digest[-1] != "0" else "1"), "size": 3}),
    ]:
        invalid(f"end-{name}", "bulk-mismatch", head + abc + frame("E", canonical(value)))
    invalid("end-before-all-came", "bulk-mismatch", head + frame("D", b"ab") + frame("E", end_payload(b"ab")))
    invalid("end-before-all-came-but-says-so", "bulk-mismatch", head + frame("D", b"ab") + end)
    invalid("end-before-anything-came", "bulk-mismatch", head + frame("E", end_payload(b"")))
    for name, payload in [
        ("empty", b""), ("not-json", b"end"), ("array", b"[]"), ("object-empty", b"{}"),
        ("without-size", canonical({"sha256": digest})), ("without-digest", canonical({"size": 3})),
        ("unknown-key", canonical({"sha256": digest, "size": 3, "v": 3})), ("null", canonical({"sha256": None, "size": 3})),
        ("size-null", canonical({"sha256": digest, "size": None})), ("size-text", canonical({"sha256": digest, "size": "3"})),
        ("size-true", canonical({"sha256": digest, "size": True})), ("size-fraction", canonical({"sha256": digest, "size": 3.0})),
        ("size-negative", canonical({"sha256": digest, "size": -3})), ("size-minus-0", b'{"sha256":"' + digest.encode() + b'","size":-0}'),
        ("size-over-2^30", canonical({"sha256": digest, "size": BULK + 1})), ("size-2^64", canonical({"sha256": digest, "size": 2**64 + 3})),
        ("digest-capitals", canonical({"sha256": digest.upper(), "size": 3})), ("digest-short", canonical({"sha256": digest[:-1], "size": 3})),
        ("digest-long", canonical({"sha256": digest + "0", "size": 3})), ("digest-newline", canonical({"sha256": digest + "\n", "size": 3})),
        ("duplicate-size", canonical({"sha256": digest, "size": 3})[:-1] + b',"size":3}'),
        ("duplicate-by-escape", canonical({"sha256": digest, "size": 3})[:-1] + b',"s\\u0069ze":3}'),
        ("trailing-text", end_payload(b"abc") + b"x"), ("trailing-nul", end_payload(b"abc") + b"\0"),
        ("byte-order-mark", b"\xef\xbb\xbf" + end_payload(b"abc")), ("a-control-payload", canonical(message("ok"))),
    ]:
        invalid(f"end-{name}", "invalid-message", head + abc + frame("E", payload))

    # The end of the stream.
    invalid("stream-empty", "closed", b"")
    whole = encode(data, b"abc")
    bounds = [len(head), len(head) + len(abc), len(whole)]
    for name, cut in [
        ("1-byte", 1), ("half-a-header", 3), ("a-header", 5), ("a-byte-of-control", 6), ("half-of-control", len(head) // 2),
        ("all-but-a-byte-of-control", len(head) - 1), ("after-control", bounds[0]), ("in-a-data-header", bounds[0] + 4),
        ("after-a-data-header", bounds[0] + 5), ("in-data", bounds[1] - 1), ("after-data", bounds[1]),
        ("in-an-end-header", bounds[1] + 2), ("in-end", bounds[1] + 40), ("all-but-a-byte", bounds[2] - 1),
    ]:
        invalid(f"stream-cut-{name}", "truncated", whole[:cut])
    invalid("stream-cut-before-the-end-of-empty-bulk", "truncated", encode(data | {"data_size": 0, "size": 0}))


def text_of(entries):
    names = [entry["name"] for entry in entries]
    assert len(names) == len(set(names)), [n for n in names if names.count(n) > 1]
    lines = ",\n".join(json.dumps(entry, ensure_ascii=True) for entry in entries)
    return f"[\n{lines}\n]\n"


def write_seeds(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for i, stream in enumerate(STREAMS):
        if len(stream) <= 2048:
            (folder / f"vector-{i:04}").write_bytes(stream)
    # END payloads by themselves, in the frame in which the fuzz target looks for them.
    (folder / "end").write_bytes(frame("E", end_payload(b"abc")))


def main():
    make_valid()
    make_invalid()
    if "--seeds" in sys.argv:
        write_seeds(pathlib.Path(sys.argv[sys.argv.index("--seeds") + 1]))
        return
    stale = []
    for name, entries in (("valid.json", VALID), ("invalid.json", INVALID)):
        text = text_of(entries)
        path = HERE / name
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(name)
    if stale:
        sys.exit(f"not what generate.py writes: {', '.join(stale)}")
    print(f"{len(VALID)} valid, {len(INVALID)} invalid")


main()
