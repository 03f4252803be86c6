#include "trainer/ranks/nccl_interface.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace trainfare::trainer {
namespace {

constexpr const char* kVariable = "NCCL_SOCKET_IFNAME";

// What the variable is afterwards, and as it was before.
std::optional<std::string> NamedFor(const RankPlace& place,
                                    const char* named = nullptr) {
  const std::optional<std::string> before = EnvironmentVariable(kVariable);
  ::unsetenv(kVariable);
  if (named != nullptr) ::setenv(kVariable, named, /*overwrite=*/1);
  KeepNcclToItsHost(place);
  const std::optional<std::string> after = EnvironmentVariable(kVariable);
  ::unsetenv(kVariable);
  if (before) ::setenv(kVariable, before->c_str(), /*overwrite=*/1);
  return after;
}

DOCTEST_TEST_CASE("NCCL stays on the loopback of its host, unless it is told") {
  RankPlace place;
  place.world_size = 4;
  place.local_world_size = 4;
  DOCTEST_CHECK(NamedFor(place) == "=lo");
  DOCTEST_CHECK(NamedFor(place, "eth0") == "eth0");
  place.local_world_size = 2;
  DOCTEST_CHECK(NamedFor(place) == std::nullopt);
}

}  // namespace
}  // namespace trainfare::trainer
