#pragma once

// How a rank and the door of rank 0's store (store_door.h) prove to each other
// that they know one secret, without saying it:
//
//   door  challenge  what it is, and 32 bytes that nobody was asked before
//   rank  answer     32 bytes of its own, and an HMAC that begins with "rank"
//   door  proof      an HMAC that begins with "door"; zeros where it was wrong
//
// Both HMACs are over the challenge, the rank's own bytes, port and attempt. An
// old answer fits no new challenge, and neither's HMAC is the other's. Messages
// have one length each, so that nobody is listened to for longer.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace trainfare::trainer {

// HMAC (RFC 2104) with SHA-1, which LibTorch has: 20 bytes. That SHA-1's
// collisions are found says nothing about its HMAC. Check: RFC 2202, in
// tests/trainer/ranks/secret_handshake_test.cc.
std::string HmacSha1(std::string_view key, std::string_view message);

// Takes the same time wherever the two differ first.
bool SameBytes(std::string_view a, std::string_view b);

// What all ranks of a run know.
struct Agreement {
  std::string secret;
  uint16_t port = 0;    // where rank 0 is reached
  std::string attempt;  // see RankPlace
};

// One side of a handshake, told what it hears and asked what to say.
class Handshake {
 public:
  enum class Verdict { kGoesOn, kRight, kWrong };
  struct Reply {
    Verdict verdict = Verdict::kWrong;
    std::string text;  // to be said in any case; may be empty
  };

  virtual ~Handshake() = default;
  // Said before anything is heard; may be empty.
  virtual std::string Opening() = 0;
  // Bytes of the message that comes next.
  virtual size_t Expected() const = 0;
  virtual Reply Hear(const std::string& message) = 0;
};

// Throws std::runtime_error where the kernel has no random bytes.
std::unique_ptr<Handshake> HandshakeOfDoor(const Agreement& agreement);
std::unique_ptr<Handshake> HandshakeOfRank(const Agreement& agreement);

// What a challenge begins with.
std::string_view ChallengeBegin();

}  // namespace trainfare::trainer
