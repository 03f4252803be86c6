#include "trainer/ranks/secret_handshake.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <memory>
#include <string>

namespace trainfare::trainer {
namespace {

using Verdict = Handshake::Verdict;

std::string Hexadecimal(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return text;
}

DOCTEST_TEST_CASE("HMAC with SHA-1 is that of RFC 2202, section 3") {
  const auto hmac = [](const std::string& key, const std::string& message) {
    return Hexadecimal(HmacSha1(key, message));
  };
  DOCTEST_CHECK(hmac(std::string(20, '\x0b'), "Hi There") ==
                "b617318655057264e28bc0b6fb378c8ef146be00");
  DOCTEST_CHECK(hmac("Jefe", "what do ya want for nothing?") ==
                "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
  DOCTEST_CHECK(hmac(std::string(20, '\xaa'), std::string(50, '\xdd')) ==
                "125d7342b9ac11cd91a39af48aa17b4f63f175d3");
  std::string counted;
  for (int i = 1; i <= 25; ++i) counted.push_back(static_cast<char>(i));
  DOCTEST_CHECK(hmac(counted, std::string(50, '\xcd')) ==
                "4c9007f4026250c6bc8414f9bf50c86c2d7235da");
  DOCTEST_CHECK(hmac(std::string(20, '\x0c'), "Test With Truncation") ==
                "4c1a03424b55e07fe7f27be1d58bb9324a9a5a04");
  const std::string large(80, '\xaa');
  DOCTEST_CHECK(
      hmac(large, "Test Using Larger Than Block-Size Key - Hash Key First") ==
      "aa4ae5e15272d00e95705637ce8a3b55ed402112");
  DOCTEST_CHECK(hmac(large,
                     "Test Using Larger Than Block-Size Key and Larger Than "
                     "One Block-Size Data") ==
                "e8e99d0f45237d786d6bbaa7965c7808bbff1a91");
}

DOCTEST_TEST_CASE("bytes are the same or not wherever they differ") {
  DOCTEST_CHECK(SameBytes("", ""));
  DOCTEST_CHECK(SameBytes("abc", "abc"));
  DOCTEST_CHECK_FALSE(SameBytes("abc", "abd"));
  DOCTEST_CHECK_FALSE(SameBytes("xbc", "abc"));
  DOCTEST_CHECK_FALSE(SameBytes("abc", "abcd"));
}

const Agreement kAgreed{"secret", 29500, "0"};

// What the door makes of the answer of a rank that knows `agreement`.
Verdict AtTheDoor(const Agreement& agreement) {
  const auto door = HandshakeOfDoor(kAgreed);
  const auto rank = HandshakeOfRank(agreement);
  const Handshake::Reply answer = rank->Hear(door->Opening());
  DOCTEST_CHECK(answer.verdict == Verdict::kGoesOn);
  DOCTEST_CHECK(answer.text.size() == door->Expected());
  const Handshake::Reply proof = door->Hear(answer.text);
  DOCTEST_CHECK(proof.text.size() == rank->Expected());
  // Both come to one conclusion.
  DOCTEST_CHECK(rank->Hear(proof.text).verdict == proof.verdict);
  return proof.verdict;
}

DOCTEST_TEST_CASE("who knows secret, port and attempt is let in") {
  DOCTEST_CHECK(AtTheDoor(kAgreed) == Verdict::kRight);
  DOCTEST_CHECK(AtTheDoor({"Secret", 29500, "0"}) == Verdict::kWrong);
  DOCTEST_CHECK(AtTheDoor({"", 29500, "0"}) == Verdict::kWrong);
  DOCTEST_CHECK(AtTheDoor({"secret", 29501, "0"}) == Verdict::kWrong);
  DOCTEST_CHECK(AtTheDoor({"secret", 29500, "1"}) == Verdict::kWrong);
}

DOCTEST_TEST_CASE("what was said once opens no other door") {
  const auto rank = HandshakeOfRank(kAgreed);
  const auto first = HandshakeOfDoor(kAgreed);
  const auto second = HandshakeOfDoor(kAgreed);
  DOCTEST_CHECK(first->Opening() != second->Opening());
  const std::string answer = rank->Hear(first->Opening()).text;
  DOCTEST_CHECK(second->Hear(answer).verdict == Verdict::kWrong);
  // Nor does a door's own proof, which an echo would be.
  const std::string proof = first->Hear(answer).text;
  DOCTEST_CHECK(first->Hear(answer.substr(0, 32) + proof).verdict ==
                Verdict::kWrong);
}

DOCTEST_TEST_CASE("a rank takes no other's word for a door's") {
  const auto door = HandshakeOfDoor(kAgreed);
  const auto rank = HandshakeOfRank(kAgreed);
  const std::string answer = rank->Hear(door->Opening()).text;
  DOCTEST_CHECK(rank->Hear(answer.substr(32)).verdict == Verdict::kWrong);
  const auto other = HandshakeOfRank(kAgreed);
  DOCTEST_CHECK(other->Hear(std::string(other->Expected(), 'x')).verdict ==
                Verdict::kWrong);
}

}  // namespace
}  // namespace trainfare::trainer
