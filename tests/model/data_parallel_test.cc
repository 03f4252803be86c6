#include "model/data_parallel.h"

#include <doctest/doctest.h>

#include <vector>

#include "tests/near.h"

namespace trainfare::model {
namespace {

using Piece = BackwardPiece<double>;

NearNumber ToRounding(double value) { return Near(value, 1e-12); }

std::vector<Piece> Pieces() {
  return {{Second(0.100), Byte(1e6), 1},
          {Second(0.200), Byte(4e6), 1},
          {Second(0.010), Bytes<>(), 0}};
}

RankNetwork<double> Network() {
  RankNetwork<double> network;
  network.alone = {Second(1e-3), BytesPerSecond<>(1e8)};
  network.beside = {Second(2e-3), BytesPerSecond<>(5e7)};
  network.speed = 0.8;
  return network;
}

}  // namespace

TEST_CASE("two ranks, as worked in docs/models/data_parallel.md") {
  const auto end = BackwardOverRanks(Pieces(), 2, Network());
  CHECK(end.compute_end.base() == ToRounding(0.3173));
  CHECK(end.exposed().base() == ToRounding(0.03575));
}

TEST_CASE("several transfers have the latency of each") {
  const RingLevel<double> ring{Second(1e-3), BytesPerSecond<>(1e8)};
  const Piece three{Seconds<>(), Byte(4e6), 3};
  // 2 (1 + 20) ms and twice 2 ms.
  CHECK(SendingTime(2, three, ring).base() == ToRounding(0.046));
  CHECK(SendingTime(2, Piece{}, ring).base() == 0.0);
}

TEST_CASE("gradients of experts are summed by those that have the same ones") {
  RankNetwork<double> network = Network();
  network.beside = network.alone;
  // Behind all computation: of four ranks 6 (1 ms + 1 MB / 100 MB/s), of two of
  // them 2 (1 ms + 2 MB / 100 MB/s).
  const std::vector<Piece> pieces = {
      {Second(0.100), Byte(4e6), 1, Byte(4e6), 1}};
  const auto end = BackwardOverRanks(pieces, 4, network, {2, 1});
  CHECK(end.exposed().base() == ToRounding(0.066 + 0.042));
}

TEST_CASE("a network that disturbs nothing is the recursion of overlap.h") {
  RankNetwork<double> network = Network();
  network.beside = network.alone;
  network.speed = 1.0;
  std::vector<OverlapTask<double>> tasks;
  for (const Piece& piece : Pieces()) {
    tasks.push_back({piece.compute, SendingTime(4, piece, network.alone)});
  }
  const auto plain = OverlapBackward(tasks, Seconds<>());
  const auto end = BackwardOverRanks(Pieces(), 4, network);
  CHECK(end.end.base() == ToRounding(plain.end.base()));
  CHECK(end.compute_end.base() == ToRounding(plain.compute_end.base()));
}

TEST_CASE("computation beside never makes a transfer faster") {
  RankNetwork<double> network = Network();
  network.speed = 1.0;
  network.beside = {Seconds<>(), BytesPerSecond<>(1e12)};
  RankNetwork<double> same = network;
  same.beside = same.alone;
  CHECK(BackwardOverRanks(Pieces(), 2, network).end ==
        BackwardOverRanks(Pieces(), 2, same).end);
}

}  // namespace trainfare::model
