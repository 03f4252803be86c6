#pragma once

// Where the experts of a token lie, routed evenly: how many of the ranks or hosts
// that divide experts it meets. docs/models/splits.md works DeepSeek-V3 by hand;
// tests/model/expert_routing_test.cc asserts it.

#include <cstdint>

namespace trainfare::model {

// Each token goes to so many experts, all of them in so many groups of those
// that the experts are in.
struct ExpertRouting {
  int64_t experts = 1;
  int64_t per_token = 1;
  int64_t groups = 1;
  int64_t groups_per_token = 1;
};

// Distinct places of so many, each with as many of the experts side by side, that
// have any of a token's:
//
//   h (1 - sum_j C(q, j) C(G - q, g - j) / C(G, g)  C(P - j E/G, k) / C(P, k))
//
//   h     places                                        [1]
//   E, k  experts, and those of a token                 [1]
//   G, g  groups, and those of a token; P = g E/G       [1]
//   q     groups of a place, G/h                        [1]
//
// which without groups is h (1 - C(E - E/h, k) / C(E, k)); where a group is over
// several places, the same of a place's E/h among the P that can be chosen, if its
// group is, g/G. Groups that do neither are left out.
// Source: sampling without replacement; DeepSeek-AI 2024, "DeepSeek-V3", section
// 2.1.2 (groups). Check: tests/model/expert_routing_test.cc.
double PlacesOfToken(const ExpertRouting& routing, int64_t places);

}  // namespace trainfare::model
