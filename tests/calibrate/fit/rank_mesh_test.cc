#include "calibrate/fit/rank_mesh.h"

#include <doctest/doctest.h>

namespace trainfare::calibrate {
namespace {

TEST_CASE("ranks lie first within a layer, then over copies, then by stage") {
  // 4 x 4 x 2 ranks over four hosts of eight.
  const RankMesh mesh{4, 4, 2, 8};
  CHECK(FaultOf(mesh).empty());
  CHECK(mesh.OfTensor().in_host == 4);
  CHECK(mesh.OfTensor().hosts == 1);
  // Two copies in a host.
  CHECK(mesh.OfData().in_host == 2);
  CHECK(mesh.OfData().hosts == 2);
  // A stage fills two hosts.
  CHECK(mesh.BetweenHosts() == 1.0);
}

TEST_CASE("layers may lie over hosts, and stages within one") {
  const RankMesh wide{16, 2, 1, 8};
  CHECK(wide.OfTensor().in_host == 8);
  CHECK(wide.OfTensor().hosts == 2);
  CHECK(wide.OfData().in_host == 1);
  CHECK(wide.OfData().hosts == 2);
  CHECK(wide.BetweenHosts() == 0.0);
  CHECK(RankMesh{2, 1, 4, 8}.BetweenHosts() == 0.0);
  // Eight stages of two ranks over two hosts of eight: one boundary of seven.
  CHECK(RankMesh{2, 1, 8, 8}.BetweenHosts() == doctest::Approx(1.0 / 7.0));
}

TEST_CASE("ranks of a sequence are neighbours behind those of a layer") {
  // 4 ranks of a layer, 4 of a sequence, 2 copies over four hosts of eight.
  const RankMesh mesh{4, 8, 1, 8, 4};
  CHECK(FaultOf(mesh).empty());
  CHECK(mesh.OfContext().in_host == 2);
  CHECK(mesh.OfContext().hosts == 2);
  CHECK(mesh.OfData().in_host == 2);
  CHECK(mesh.OfData().hosts == 4);
  CHECK(RankMesh{2, 8, 1, 8, 4}.OfContext().hosts == 1);
  CHECK(FaultOf({2, 3, 1, 8, 3}).starts_with("context: expected ranks of a"));
}

TEST_CASE("ranks that divide experts are neighbours of the same weights") {
  const RankMesh mesh{2, 16, 1, 8, 1, 8};
  CHECK(FaultOf(mesh).empty());
  CHECK(mesh.OfExpert().in_host == 4);
  CHECK(mesh.OfExpert().hosts == 2);
  CHECK(FaultOf({1, 6, 1, 8, 1, 6}).starts_with("expert: expected ranks that"));
}

TEST_CASE("ranks of whole experts are neighbours within layers, too") {
  // 2 ranks of a layer, 32 with the same weights, 8 stages over hosts of eight:
  // 64 ranks have other experts, one host after another.
  RankMesh mesh{2, 32, 8, 8, 1, 64, 1};
  CHECK(FaultOf(mesh).empty());
  CHECK(mesh.OfExpert().in_host == 8);
  CHECK(mesh.OfExpert().hosts == 8);
  CHECK(mesh.OfExpertData().in_host == 1);
  CHECK(mesh.OfExpertData().hosts == 1);
  // Of 4 x 16 ranks 4 have experts of their own, 16 the same ones, two of these
  // in a host.
  mesh = {4, 16, 1, 8, 1, 4, 1};
  CHECK(mesh.OfExpert().in_host == 4);
  CHECK(mesh.OfExpertData().in_host == 2);
  CHECK(mesh.OfExpertData().hosts == 8);
  // Divided as layers they are as many devices apart as a layer has ranks.
  mesh.expert_tensor = 0;
  CHECK(mesh.OfExpert().in_host == 2);
  CHECK(mesh.OfExpert().hosts == 2);
  CHECK(mesh.OfExpertData().in_host == 1);
  CHECK(mesh.OfExpertData().hosts == 4);
}

TEST_CASE("groups that do not fill hosts are named") {
  CHECK(FaultOf({3, 1, 1, 8}).starts_with("tensor: expected ranks that lie"));
  CHECK(FaultOf({2, 3, 1, 8}).starts_with("data: expected copies that lie"));
}

}  // namespace
}  // namespace trainfare::calibrate
