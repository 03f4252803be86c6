"""Hostile packets to the sockets of ranks that were given a name to listen at.

    packets.py TRAINER [--count N] [--seconds S] [--seed N]

Two ranks train as on two hosts, behind a shared secret. While the first waits
for the second strangers say a packet each, and some of them stay; others come
while the ranks connect. None is told a key or how many there are, and one who
knows every key says in vain that a rank is lost. Both then train on, say
nothing, let nobody in any more and stop when they are asked to.
"""

import hashlib
import select
import signal
import socket
import struct
import tempfile
import time
from pathlib import Path

import counting
import kills
from counting import Finding

# Of c10d's TCPStore: the number that opens a conversation, and its questions.
MAGIC = struct.pack("<BI", 0, 0x3C85F7CE)
SET, COMPARE_SET, GET, ADD, CHECK, WAIT, KEYS, DELETE, APPEND, MULTI_GET = range(
    1, 11)
LIST_KEYS = 17
PACKETS = 2000  # an attack, each heard by a socket that listens
KNOCKS_LATE = 40
KEYS_OF_A_RUN = ("lost", "pulse/0", "pulse/1", "member/0", "left/0", "line/0")
SIZES = (0, 1, 8 * 1024, 8 * 1024 + 1, 2**31, 2**32, 2**63, 2**64 - 1)
# All that the door of a store says (trainer/ranks/secret_handshake.h): what it
# is, what it asks, and zeros for who answers wrongly.
DOOR = b"trainfare door 1"
CHALLENGE, REFUSAL = 48, bytes(20)
KNOCKS = (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\0\x01\0\x01",
          b"SSH-2.0-x\r\n", b"\x1b]0;owned\x07\x1b[2J", b"\0" * 64, b"\xff" * 64)


def text(value):
    return struct.pack("<Q", len(value)) + value


def packet(random):
    """Bytes for one connection, of which most begin as a rank's do."""
    kind = random.randrange(4)
    if kind == 0:
        return random.choice(KNOCKS)
    if kind == 1:
        return random.randbytes(random.choice((1, 5, 17, 300, 70000)))
    key = random.choice(KEYS_OF_A_RUN).encode()
    key = b"/trainfare/" + random.choice((b"", b"0/", b"/0/")) + key
    if kind == 2:  # a size that is not that of what follows
        return MAGIC + struct.pack(
            "<BQ", random.randrange(32), random.choice(SIZES)) + key
    value = b"\x1b[31m rank 0 is lost" + random.randbytes(8)
    return MAGIC + random.choice((
        bytes([SET]) + text(key) + text(value),
        bytes([COMPARE_SET]) + text(key) + text(b"") + text(value),
        bytes([GET]) + text(key),
        bytes([ADD]) + text(key) + struct.pack("<q", random.choice((1, -2**63))),
        bytes([CHECK]) + struct.pack("<Q", 1) + text(key),
        bytes([WAIT]) + struct.pack("<Q", 1) + text(key),
        bytes([KEYS]),
        bytes([LIST_KEYS]),
        bytes([DELETE]) + text(key),
        bytes([APPEND]) + text(key) + text(value),
        bytes([MULTI_GET]) + struct.pack("<Q", 2) + text(key) + text(key)))


def connect(port, within):
    """A connection, or None where nobody lets us in."""
    stranger = socket.socket()
    stranger.setblocking(False)
    stranger.connect_ex(("127.0.0.1", port))
    _, there, _ = select.select([], [stranger], [], within)
    if there and stranger.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
        return stranger
    stranger.close()
    return None


def say(stranger, data):
    try:
        stranger.send(data)
    except OSError:  # it was shown the door
        pass


def told(port, question):
    """What a stranger hears within a second of asking."""
    stranger = connect(port, 5)
    if not stranger:
        raise Finding("nobody listens any more")
    heard = b""
    with stranger:
        say(stranger, question)
        while select.select([stranger], [], [], 1)[0]:
            try:
                more = stranger.recv(4096)
            except ConnectionError:
                break
            if not more:
                break
            heard += more
    return heard


def expect_alive(processes):
    for process in processes:
        if process.poll() is not None:
            raise Finding(f"{process.returncode}: {process.communicate()[1]}")


class Packets(kills.Ranks):
    def once(self, random, folder):
        port = self.ranks.free_port()
        checkpoint = folder / "checkpoint.safetensors"
        command = self.arguments("--checkpoint", checkpoint,
                                 "--checkpoint-every", 1, "--join-within", 300)
        secret = f"{random.getrandbits(64):x}"
        places = [{**self.ranks.torchrun(rank, 2, port), "LOCAL_WORLD_SIZE": 1,
                   "TRAINFARE_RANKS_SECRET": secret} for rank in range(2)]
        early = []
        with self.ranks.Ranks(command, places[:1]) as first:
            self.gather(random, early, first.processes, lambda: early)
            self.pester(random, early, first.processes, port)
            self.ask(secret, port)
            with self.ranks.Ranks(command, places[1:]) as second:
                both = [*first.processes, *second.processes]
                self.gather(random, early, both, checkpoint.exists)
                self.knock(random, early, both)
                self.stop(both, checkpoint)
        for stranger in early:
            stranger.close()
        return f"{PACKETS} packets"

    def doors(self, processes):
        found = set()
        for process in processes:
            try:
                found |= self.ranks.listening(process.pid)
            except OSError:  # it ended
                expect_alive([process])
        return sorted({int(one.split(":")[1], 16) for one in found})

    def gather(self, random, early, processes, done):
        """Strangers come to each door there is until `done`."""
        end = time.monotonic() + 60
        while not done():
            expect_alive(processes)
            if time.monotonic() > end:
                raise Finding("the ranks do not come together within 60 s")
            for door in self.doors(processes):
                stranger = connect(door, 0.02) if len(early) < 200 else None
                if stranger:
                    early.append(stranger)
                    say(stranger, packet(random))
            time.sleep(0.01)

    @staticmethod
    def pester(random, early, processes, port):
        heard = 0
        end = time.monotonic() + 60
        while heard < PACKETS:
            if time.monotonic() > end:
                raise Finding(f"only {heard} packets are heard in 60 s")
            stranger = connect(port, 0.5)
            if not stranger:
                continue
            say(stranger, packet(random))
            heard += 1
            if heard % 20 == 0:
                early.append(stranger)
            else:
                stranger.close()
        expect_alive(processes)

    @staticmethod
    def ask(secret, port):
        """For keys, and then as one who knows them all."""
        digest = hashlib.sha1(f"{secret}\n{port}".encode()).hexdigest()
        key = text(f"/trainfare/{digest}/0/lost".encode())
        line = text(b"rank 0 is lost: says a stranger")
        many = struct.pack("<Q", 1)
        for question in (bytes([KEYS]), bytes([LIST_KEYS]),
                         bytes([CHECK]) + many + key, bytes([GET]) + key,
                         bytes([MULTI_GET]) + many + key,
                         bytes([COMPARE_SET]) + key + text(b"") + line,
                         bytes([SET]) + key + line):
            answer = told(port, MAGIC + question)
            if (answer[:len(DOOR)] != DOOR or
                    answer[CHALLENGE:] not in (b"", REFUSAL)):
                raise Finding(f"{question[:1]}: a stranger is told {answer}")

    def knock(self, random, early, processes):
        """Once the ranks are connected."""
        for stranger in early:
            say(stranger, packet(random))
        doors = self.doors(processes)
        for _ in range(KNOCKS_LATE):
            stranger = connect(random.choice(doors), 0.02)
            if stranger:
                stranger.close()
                raise Finding("a stranger is let in while the ranks train")
        expect_alive(processes)

    @staticmethod
    def stop(processes, checkpoint):
        before = kills.Checkpoint.step_of(checkpoint)
        end = time.monotonic() + 60
        while kills.Checkpoint.step_of(checkpoint) <= before:
            if time.monotonic() > end:
                raise Finding("it trains no more")
            time.sleep(0.01)
        processes[1].send_signal(signal.SIGTERM)
        for process in processes:
            _, error = process.communicate(timeout=60)
            if process.returncode != 130 or error:
                raise Finding(f"{process.returncode}: {error}")


def main():
    parser = counting.options_of(__doc__)
    parser.add_argument("trainer", type=counting.program)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        counting.run_all(
            {"packets": (Packets(options.trainer, Path(folder)).once, 1)},
            options)


if __name__ == "__main__":
    main()
