#include "trainer/ranks/store_door.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace trainfare::trainer {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kLong(10'000);
constexpr size_t kChallengeBytes = 48;
constexpr size_t kAnswerBytes = 52;
constexpr size_t kProofBytes = 20;

bool Readable(const Socket& socket, milliseconds within) {
  pollfd wait{socket.get(), POLLIN, 0};
  return ::poll(&wait, 1, static_cast<int>(within.count())) == 1;
}

// Bytes up to `count`, fewer where the other end is closed; longer than kLong
// there must not be silence.
std::string Hear(const Socket& socket, size_t count) {
  std::string text(count, '\0');
  size_t heard = 0;
  while (heard < count) {
    DOCTEST_REQUIRE(Readable(socket, kLong));
    const ssize_t more =
        ::recv(socket.get(), text.data() + heard, count - heard, 0);
    if (more <= 0) break;
    heard += static_cast<size_t>(more);
  }
  text.resize(heard);
  return text;
}

void Say(const Socket& socket, const std::string& text) {
  for (size_t said = 0; said < text.size();) {
    pollfd wait{socket.get(), POLLOUT, 0};
    if (::poll(&wait, 1, kLong.count()) != 1) return;
    const ssize_t more = ::send(
        socket.get(), text.data() + said, text.size() - said, MSG_NOSIGNAL);
    if (more <= 0) return;  // it was shown the door
    said += static_cast<size_t>(more);
  }
}

SocketAddress Loopback(uint16_t port) {
  auto [unused, address] = ListenOnLoopback();
  reinterpret_cast<sockaddr_in*>(&address.address)->sin_port = htons(port);
  return address;
}

// A store behind a door; what it takes in is seen by the test.
class Guarded {
 public:
  explicit Guarded(const DoorLimits& limits = {}) {
    std::tie(store_, store_address_) = ListenOnLoopback();
    auto [listener, address] = ListenOnLoopback();
    address_ = address;
    agreement_ = {"secret", PortOf(address), "0"};
    door_ = StoreDoor::Open(
        std::move(listener), store_address_, agreement_, limits);
  }

  const Agreement& agreement() const { return agreement_; }
  const SocketAddress& address() const { return address_; }
  StoreDoor& door() { return *door_; }
  bool SawSomebody(milliseconds within = milliseconds(50)) const {
    return Readable(store_, within);
  }
  Socket Accept() const {
    DOCTEST_REQUIRE(SawSomebody(kLong));
    return Socket(::accept(store_.get(), nullptr, nullptr));
  }

 private:
  Socket store_;
  SocketAddress store_address_;
  SocketAddress address_;
  Agreement agreement_;
  std::unique_ptr<StoreDoor> door_;
};

DOCTEST_TEST_CASE("a relay and a door hand on every byte, both ways") {
  Guarded guarded;
  const auto relay =
      StoreDoor::OpenRelay(guarded.address(), guarded.agreement());
  const Socket client = Dial(Loopback(relay->port()));
  std::string there(300'000, '\0');
  for (size_t i = 0; i < there.size(); ++i) {
    there[i] = static_cast<char>(i * i + i / 7);
  }
  const std::string back(there.rbegin(), there.rend());
  std::thread says([&] { Say(client, there); });
  Socket store = guarded.Accept();
  std::thread answers([&] { Say(store, back); });
  DOCTEST_CHECK((Hear(store, there.size()) == there));
  DOCTEST_CHECK((Hear(client, back.size()) == back));
  says.join();
  answers.join();
  // A second one of the same process, as a clone of a store is.
  const Socket other = Dial(Loopback(relay->port()));
  Say(other, "?");
  const Socket beside = guarded.Accept();
  DOCTEST_CHECK(Hear(beside, 1) == "?");
  // The end of one is that of its like alone.
  store = Socket();
  DOCTEST_CHECK(Hear(client, 1).empty());
  Say(beside, "!");
  DOCTEST_CHECK(Hear(other, 1) == "!");
}

DOCTEST_TEST_CASE("what a store said before its door was gone is heard") {
  auto guarded = std::make_unique<Guarded>();
  const auto relay =
      StoreDoor::OpenRelay(guarded->address(), guarded->agreement());
  const Socket client = Dial(Loopback(relay->port()));
  Say(client, "?");
  const Socket store = guarded->Accept();
  DOCTEST_CHECK(Hear(store, 1) == "?");
  Say(store, "last");
  guarded = nullptr;
  DOCTEST_CHECK(Hear(client, 5) == "last");
}

DOCTEST_TEST_CASE("another secret, port or attempt is refused at once") {
  Guarded guarded;
  const Agreement& right = guarded.agreement();
  const auto other_port = static_cast<uint16_t>(right.port ^ 1);
  for (const Agreement& other : {Agreement{"other", right.port, "0"},
                                 Agreement{right.secret, other_port, "0"},
                                 Agreement{right.secret, right.port, "1"}}) {
    DOCTEST_CHECK(AskDoor(guarded.address(), other) == DoorAnswer::kWrong);
    // The relay's client learns it by a closed connection.
    const auto relay = StoreDoor::OpenRelay(guarded.address(), other);
    const Socket client = Dial(Loopback(relay->port()));
    Say(client, "?");
    DOCTEST_CHECK(Hear(client, 1).empty());
  }
  DOCTEST_CHECK_FALSE(guarded.SawSomebody());
  DOCTEST_CHECK(AskDoor(guarded.address(), guarded.agreement()) ==
                DoorAnswer::kRight);
}

DOCTEST_TEST_CASE("a stranger that is silent is shown the door in time") {
  DoorLimits limits;
  limits.handshake = milliseconds(200);
  Guarded guarded(limits);
  const auto begin = Clock::now();
  const Socket silent = Dial(guarded.address());
  const Socket slow = Dial(guarded.address());
  Say(slow, "half of an answer");
  DOCTEST_CHECK(Hear(silent, 1000).size() == kChallengeBytes);
  DOCTEST_CHECK(Hear(slow, 1000).size() == kChallengeBytes);
  DOCTEST_CHECK(Clock::now() - begin >= limits.handshake);
  DOCTEST_CHECK_FALSE(guarded.SawSomebody());
}

DOCTEST_TEST_CASE("garbage gets a challenge, a refusal and no more") {
  Guarded guarded;
  for (const std::string& text :
       {std::string(kAnswerBytes, '\0'),
        std::string(kAnswerBytes, '\xff'),
        std::string(
            "GET / HTTP/1.1\r\nHost: a.b.c.d\r\nAccept: */*\r\n\r\n\r\n")
            .append(kAnswerBytes, ' ')
            .substr(0, kAnswerBytes)}) {
    const Socket stranger = Dial(guarded.address());
    DOCTEST_CHECK(Hear(stranger, kChallengeBytes).rfind(ChallengeBegin(), 0) ==
                  0);
    Say(stranger, text);
    DOCTEST_CHECK(Hear(stranger, 1000) == std::string(kProofBytes, '\0'));
  }
  // More than anybody asked for.
  const Socket loud = Dial(guarded.address());
  Say(loud, std::string(1'000'000, 'x'));
  DOCTEST_CHECK(Hear(loud, 1000).size() <= kChallengeBytes + kProofBytes);
  DOCTEST_CHECK_FALSE(guarded.SawSomebody());
}

DOCTEST_TEST_CASE("an answer that was right once opens no door again") {
  Guarded guarded;
  const auto rank = HandshakeOfRank(guarded.agreement());
  const Socket first = Dial(guarded.address());
  const std::string answer = rank->Hear(Hear(first, kChallengeBytes)).text;
  Say(first, answer);
  DOCTEST_CHECK(rank->Hear(Hear(first, kProofBytes)).verdict ==
                Handshake::Verdict::kRight);
  const Socket store = guarded.Accept();
  const Socket second = Dial(guarded.address());
  Hear(second, kChallengeBytes);
  Say(second, answer);
  DOCTEST_CHECK(Hear(second, 1000) == std::string(kProofBytes, '\0'));
  DOCTEST_CHECK_FALSE(guarded.SawSomebody());
  // Who is in is not disturbed.
  Say(first, "?");
  DOCTEST_CHECK(Hear(store, 1) == "?");
}

DOCTEST_TEST_CASE("a flood of strangers keeps no rank out") {
  DoorLimits limits;
  limits.newcomers = 16;
  Guarded guarded(limits);
  const auto relay =
      StoreDoor::OpenRelay(guarded.address(), guarded.agreement());
  std::vector<Socket> early;
  for (int i = 0; i < 100; ++i) early.push_back(Dial(guarded.address()));
  // The first ones had to go for the others.
  DOCTEST_CHECK(Hear(early.front(), 1000).size() <= kChallengeBytes);
  std::atomic<bool> ends{false};
  std::thread flood([&] {
    std::vector<Socket> ring(200);
    for (size_t i = 0; !ends.load(); ++i) {
      ring[i % ring.size()] = Dial(guarded.address());
    }
  });
  // c10d's client tries again where it is cut off, too.
  std::string said;
  for (int attempt = 0; attempt < 100 && said.empty(); ++attempt) {
    const Socket client = Dial(Loopback(relay->port()));
    Say(client, "?");
    if (!guarded.SawSomebody(milliseconds(1000))) continue;
    const Socket store = guarded.Accept();
    const std::string heard = Hear(store, 1);
    Say(store, "!");
    if (Hear(client, 1) == "!") said = heard;
  }
  ends.store(true);
  flood.join();
  DOCTEST_CHECK(said == "?");
}

DOCTEST_TEST_CASE("a closed door lets nobody in, and who is in stays") {
  Guarded guarded;
  const auto relay =
      StoreDoor::OpenRelay(guarded.address(), guarded.agreement());
  const Socket client = Dial(Loopback(relay->port()));
  Say(client, "?");
  const Socket store = guarded.Accept();
  DOCTEST_CHECK(Hear(store, 1) == "?");
  const Socket waits = Dial(guarded.address());
  DOCTEST_CHECK(Hear(waits, kChallengeBytes).size() == kChallengeBytes);
  guarded.door().Close();
  relay->Close();
  DOCTEST_CHECK(Hear(waits, 1).empty());
  const auto end = Clock::now() + kLong;
  while (Answers(guarded.address()) || Answers(Loopback(relay->port()))) {
    DOCTEST_REQUIRE(Clock::now() < end);
  }
  DOCTEST_CHECK(AskDoor(guarded.address(), guarded.agreement()) ==
                DoorAnswer::kNobody);
  Say(store, "!");
  DOCTEST_CHECK(Hear(client, 1) == "!");
}

DOCTEST_TEST_CASE("a rank tells a door from who asks for no secret") {
  constexpr milliseconds kShort(50);
  Guarded guarded;
  DOCTEST_CHECK(AsksForSecret(guarded.address()));
  auto [store, address] = ListenOnLoopback();
  DOCTEST_CHECK_FALSE(AsksForSecret(address));
  DOCTEST_CHECK(AskDoor(address, guarded.agreement(), kShort) ==
                DoorAnswer::kSilent);
  store = Socket();
  DOCTEST_CHECK(AskDoor(address, guarded.agreement(), kShort) ==
                DoorAnswer::kNobody);
}

DOCTEST_TEST_CASE("a connection of this process is one of its user") {
  auto [listener, address] = ListenOnLoopback();
  const Socket client = Dial(address);
  const Socket accepted(::accept(listener.get(), nullptr, nullptr));
  DOCTEST_CHECK(IsFromThisUser(accepted));
  // The same as an IPv6 socket, which c10d's are.
  Socket mapped(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (mapped) {
    sockaddr_in6 there{};
    there.sin6_family = AF_INET6;
    there.sin6_port = htons(PortOf(address));
    DOCTEST_REQUIRE(
        ::inet_pton(AF_INET6, "::ffff:127.0.0.1", &there.sin6_addr) == 1);
    DOCTEST_REQUIRE(::connect(mapped.get(),
                              reinterpret_cast<const sockaddr*>(&there),
                              sizeof(there)) == 0);
    const Socket second(::accept(listener.get(), nullptr, nullptr));
    DOCTEST_CHECK(IsFromThisUser(second));
  }
  DOCTEST_CHECK_FALSE(IsFromThisUser(listener));
}

}  // namespace
}  // namespace trainfare::trainer
