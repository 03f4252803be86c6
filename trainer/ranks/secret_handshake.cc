#include "trainer/ranks/secret_handshake.h"

#include <c10/util/hash.h>
#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace trainfare::trainer {
namespace {

constexpr std::string_view kChallengeBegin = "trainfare door 1";
constexpr size_t kRandomBytes = 32;
constexpr size_t kHmacBytes = 20;
constexpr size_t kChallengeBytes = kChallengeBegin.size() + kRandomBytes;
constexpr size_t kAnswerBytes = kRandomBytes + kHmacBytes;

// Of a text that is not empty, which c10::sha1 has no start for.
std::string Sha1(const std::string& text) {
  const std::string hexadecimal = c10::sha1(text).str();
  std::string bytes;
  for (size_t i = 0; i < hexadecimal.size(); i += 2) {
    unsigned byte = 0;
    std::from_chars(
        hexadecimal.data() + i, hexadecimal.data() + i + 2, byte, 16);
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

std::string RandomBytes() {
  std::string bytes(kRandomBytes, '\0');
  // So few come at once, unless a signal came first.
  while (::getrandom(bytes.data(), bytes.size(), 0) !=
         static_cast<ssize_t>(bytes.size())) {
    if (errno != EINTR) throw std::runtime_error("no random bytes");
  }
  return bytes;
}

// What `who` alone can say of a challenge and the rank's own bytes.
std::string Proof(std::string_view who,
                  const Agreement& agreement,
                  const std::string& challenge,
                  std::string_view own) {
  return HmacSha1(agreement.secret,
                  fmt::format("{}{}{}{}/{}",
                              who,
                              challenge,
                              own,
                              agreement.port,
                              agreement.attempt));
}

class Door : public Handshake {
 public:
  explicit Door(Agreement agreement)
      : agreement_(std::move(agreement)),
        challenge_(std::string(kChallengeBegin) + RandomBytes()) {}

  std::string Opening() override { return challenge_; }
  size_t Expected() const override { return kAnswerBytes; }
  Reply Hear(const std::string& answer) override {
    const std::string own = answer.substr(0, kRandomBytes);
    if (!SameBytes(std::string_view(answer).substr(own.size()),
                   Proof("rank", agreement_, challenge_, own))) {
      return {Verdict::kWrong, std::string(kHmacBytes, '\0')};
    }
    return {Verdict::kRight, Proof("door", agreement_, challenge_, own)};
  }

 private:
  Agreement agreement_;
  std::string challenge_;
};

class Rank : public Handshake {
 public:
  explicit Rank(Agreement agreement)
      : agreement_(std::move(agreement)), own_(RandomBytes()) {}

  std::string Opening() override { return ""; }
  size_t Expected() const override {
    return challenge_.empty() ? kChallengeBytes : kHmacBytes;
  }
  Reply Hear(const std::string& message) override {
    if (challenge_.empty()) {
      if (message.rfind(kChallengeBegin, 0) != 0) return {};
      challenge_ = message;
      return {Verdict::kGoesOn,
              own_ + Proof("rank", agreement_, challenge_, own_)};
    }
    const bool right =
        SameBytes(message, Proof("door", agreement_, challenge_, own_));
    return {right ? Verdict::kRight : Verdict::kWrong, ""};
  }

 private:
  Agreement agreement_;
  std::string own_;
  std::string challenge_;  // once it was heard
};

}  // namespace

std::string HmacSha1(std::string_view key, std::string_view message) {
  constexpr size_t kBlockBytes = 64;  // of SHA-1
  std::string block =
      key.size() > kBlockBytes ? Sha1(std::string(key)) : std::string(key);
  block.resize(kBlockBytes, '\0');
  std::string inner = block;
  std::string outer = block;
  for (char& byte : inner) byte = static_cast<char>(byte ^ 0x36);
  for (char& byte : outer) byte = static_cast<char>(byte ^ 0x5c);
  return Sha1(outer + Sha1(inner.append(message)));
}

bool SameBytes(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  // Volatile, so that no compiler leaves the loop early.
  volatile unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(
        difference |
        (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i])));
  }
  return difference == 0;
}

std::unique_ptr<Handshake> HandshakeOfDoor(const Agreement& agreement) {
  return std::make_unique<Door>(agreement);
}

std::unique_ptr<Handshake> HandshakeOfRank(const Agreement& agreement) {
  return std::make_unique<Rank>(agreement);
}

std::string_view ChallengeBegin() { return kChallengeBegin; }

}  // namespace trainfare::trainer
