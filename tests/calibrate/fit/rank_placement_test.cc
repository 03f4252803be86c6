#include "calibrate/fit/rank_placement.h"

#include <doctest/doctest.h>

#include <string>

#include "model/parallel.h"
#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

using model::Parallel;

// Over hosts of eight devices.
RankPlacement OverEights(const Parallel& parallel) { return {parallel, 8}; }

std::string FaultOverEights(const Parallel& parallel) {
  const auto fault = OverEights(parallel).Fault();
  return fault ? std::string(fault->field) + ": " + fault->message : "";
}

TEST_CASE("ranks lie first within a layer, then over copies, then by stage") {
  // 4 x 4 x 2 ranks over four hosts of eight.
  const Parallel parallel{.data = 4, .tensor = 4, .pipeline = 2};
  const RankPlacement placement = OverEights(parallel);
  CHECK(FaultOverEights(parallel).empty());
  CHECK(placement.OfTensor().in_host == 4);
  CHECK(placement.OfTensor().hosts == 1);
  // Two copies in a host.
  CHECK(placement.OfData().in_host == 2);
  CHECK(placement.OfData().hosts == 2);
  // A stage fills two hosts.
  CHECK(placement.BetweenHosts() == 1.0);
}

TEST_CASE("layers may lie over hosts, and stages within one") {
  const RankPlacement wide = OverEights({.data = 2, .tensor = 16});
  CHECK(wide.OfTensor().in_host == 8);
  CHECK(wide.OfTensor().hosts == 2);
  CHECK(wide.OfData().in_host == 1);
  CHECK(wide.OfData().hosts == 2);
  CHECK(wide.BetweenHosts() == 0.0);
  const auto between = [](int64_t stages) {
    return OverEights({.data = 1, .tensor = 2, .pipeline = stages})
        .BetweenHosts();
  };
  CHECK(between(4) == 0.0);
  // Eight stages of two ranks over two hosts of eight: one boundary of seven.
  CHECK(between(8) == Near(1.0 / 7.0, 1e-5));
}

TEST_CASE("ranks of a sequence are neighbours behind those of a layer") {
  // 4 ranks of a layer, 4 of a sequence, 2 copies over four hosts of eight.
  Parallel parallel{.data = 2, .tensor = 4, .context = 4};
  const RankPlacement placement = OverEights(parallel);
  CHECK(FaultOverEights(parallel).empty());
  CHECK(placement.OfContext().in_host == 2);
  CHECK(placement.OfContext().hosts == 2);
  CHECK(placement.OfData().in_host == 2);
  CHECK(placement.OfData().hosts == 4);
  parallel.tensor = 2;
  CHECK(OverEights(parallel).OfContext().hosts == 1);
  CHECK(FaultOverEights({.data = 1, .tensor = 2, .context = 3})
            .starts_with("context: expected ranks of a"));
}

TEST_CASE("ranks that divide experts are neighbours of the same weights") {
  const Parallel parallel{.data = 16, .tensor = 2, .expert = 8};
  CHECK(FaultOverEights(parallel).empty());
  CHECK(OverEights(parallel).OfExpert().in_host == 4);
  CHECK(OverEights(parallel).OfExpert().hosts == 2);
  CHECK(FaultOverEights({.data = 6, .expert = 6})
            .starts_with("expert: expected ranks that"));
}

TEST_CASE("ranks of whole experts are neighbours within layers, too") {
  // 2 ranks of a layer, 32 with the same weights, 8 stages over hosts of eight:
  // 64 ranks have other experts, one host after another.
  const Parallel folded{
      .data = 32, .tensor = 2, .expert = 64, .expert_tensor = 1, .pipeline = 8};
  const RankPlacement of_folded = OverEights(folded);
  CHECK(FaultOverEights(folded).empty());
  CHECK(of_folded.OfExpert().in_host == 8);
  CHECK(of_folded.OfExpert().hosts == 8);
  CHECK(of_folded.OfExpertData().ranks() == 1);
  // Of 4 x 16 ranks 4 have experts of their own, 16 the same ones, two of these
  // in a host.
  Parallel parallel{.data = 16, .tensor = 4, .expert = 4, .expert_tensor = 1};
  CHECK(OverEights(parallel).OfExpert().in_host == 4);
  CHECK(OverEights(parallel).OfExpertData().in_host == 2);
  CHECK(OverEights(parallel).OfExpertData().hosts == 8);
  // Divided as layers they are as many devices apart as a layer has ranks.
  parallel.expert_tensor = 0;
  CHECK(OverEights(parallel).OfExpert().in_host == 2);
  CHECK(OverEights(parallel).OfExpert().hosts == 2);
  CHECK(OverEights(parallel).OfExpertData().in_host == 1);
  CHECK(OverEights(parallel).OfExpertData().hosts == 4);
}

TEST_CASE("groups that do not fill hosts are named") {
  CHECK(FaultOverEights({.data = 1, .tensor = 3})
            .starts_with("tensor: expected ranks that lie"));
  CHECK(FaultOverEights({.data = 3, .tensor = 2})
            .starts_with("data: expected copies that lie"));
}

}  // namespace
}  // namespace trainfare::calibrate
