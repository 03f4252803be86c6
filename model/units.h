#pragma once

// Dimension types: what has a unit carries it in its type.
//
// A Quantity holds one number in base units: B, FLOP, s, USD, J. The exponents
// are template arguments, so that a peak cannot be passed for a bandwidth, and
// a quotient has the right type by itself. T is double, or an autodiff scalar
// in a fit: the fitted formula is the simulated one.
//
// Raw numbers enter and leave only through the named makers and readers below.
// GB = 1e9 B, GiB = 2^30 B.

#include <concepts>

namespace trainfare::model {

template <int kByte,
          int kFlop,
          int kSecond,
          int kUsd,
          int kJoule,
          class T = double>
class Quantity {
 public:
  using Scalar = T;

  constexpr Quantity() : value_(0.0) {}
  constexpr explicit Quantity(T base_value) : value_(base_value) {}
  // A plain constant enters an autodiff formula as it is.
  template <class U>
  requires(!std::same_as<U, T> && std::convertible_to<U, T>)
      // NOLINTNEXTLINE(google-explicit-constructor): widening loses nothing.
      constexpr Quantity(Quantity<kByte, kFlop, kSecond, kUsd, kJoule, U> other)
      : value_(other.base()) {}

  // The number in base units (B, FLOP, s, USD, J and their products).
  constexpr const T& base() const { return value_; }

  constexpr Quantity& operator+=(const Quantity& other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(const Quantity& other) {
    value_ -= other.value_;
    return *this;
  }
  constexpr Quantity operator-() const { return Quantity(-value_); }

  friend constexpr bool operator<(const Quantity& a, const Quantity& b) {
    return a.value_ < b.value_;
  }
  friend constexpr bool operator>(const Quantity& a, const Quantity& b) {
    return b < a;
  }
  friend constexpr bool operator<=(const Quantity& a, const Quantity& b) {
    return !(b < a);
  }
  friend constexpr bool operator>=(const Quantity& a, const Quantity& b) {
    return !(a < b);
  }
  friend constexpr bool operator==(const Quantity& a, const Quantity& b) {
    return a.value_ == b.value_;
  }

 private:
  T value_;
};

template <class T = double>
using Bytes = Quantity<1, 0, 0, 0, 0, T>;
template <class T = double>
using Flops = Quantity<0, 1, 0, 0, 0, T>;
template <class T = double>
using Seconds = Quantity<0, 0, 1, 0, 0, T>;
template <class T = double>
using Usd = Quantity<0, 0, 0, 1, 0, T>;
template <class T = double>
using Joules = Quantity<0, 0, 0, 0, 1, T>;
template <class T = double>
using Hertz = Quantity<0, 0, -1, 0, 0, T>;
template <class T = double>
using Watts = Quantity<0, 0, -1, 0, 1, T>;
template <class T = double>
using BytesPerSecond = Quantity<1, 0, -1, 0, 0, T>;
template <class T = double>
using FlopsPerSecond = Quantity<0, 1, -1, 0, 0, T>;
template <class T = double>
using FlopsPerByte = Quantity<-1, 1, 0, 0, 0, T>;
template <class T = double>
using JoulesPerFlop = Quantity<0, -1, 0, 0, 1, T>;
template <class T = double>
using UsdPerSecond = Quantity<0, 0, -1, 1, 0, T>;

namespace internal {

// What double and an autodiff scalar make together.
template <class A, class B>
using Common = decltype(A() + B());

// A dimensionless result is its scalar.
template <int kByte, int kFlop, int kSecond, int kUsd, int kJoule, class T>
constexpr auto Simplify(T value) {
  if constexpr (kByte == 0 && kFlop == 0 && kSecond == 0 && kUsd == 0 &&
                kJoule == 0) {
    return value;
  } else {
    return Quantity<kByte, kFlop, kSecond, kUsd, kJoule, T>(value);
  }
}

}  // namespace internal

template <int B, int F, int S, int U, int J, class T1, class T2>
constexpr auto operator+(const Quantity<B, F, S, U, J, T1>& a,
                         const Quantity<B, F, S, U, J, T2>& b) {
  using T = internal::Common<T1, T2>;
  return Quantity<B, F, S, U, J, T>(a.base() + b.base());
}

template <int B, int F, int S, int U, int J, class T1, class T2>
constexpr auto operator-(const Quantity<B, F, S, U, J, T1>& a,
                         const Quantity<B, F, S, U, J, T2>& b) {
  using T = internal::Common<T1, T2>;
  return Quantity<B, F, S, U, J, T>(a.base() - b.base());
}

template <int B1,
          int F1,
          int S1,
          int U1,
          int J1,
          class T1,
          int B2,
          int F2,
          int S2,
          int U2,
          int J2,
          class T2>
constexpr auto operator*(const Quantity<B1, F1, S1, U1, J1, T1>& a,
                         const Quantity<B2, F2, S2, U2, J2, T2>& b) {
  using T = internal::Common<T1, T2>;
  return internal::Simplify<B1 + B2, F1 + F2, S1 + S2, U1 + U2, J1 + J2, T>(
      T(a.base() * b.base()));
}

template <int B1,
          int F1,
          int S1,
          int U1,
          int J1,
          class T1,
          int B2,
          int F2,
          int S2,
          int U2,
          int J2,
          class T2>
constexpr auto operator/(const Quantity<B1, F1, S1, U1, J1, T1>& a,
                         const Quantity<B2, F2, S2, U2, J2, T2>& b) {
  using T = internal::Common<T1, T2>;
  return internal::Simplify<B1 - B2, F1 - F2, S1 - S2, U1 - U2, J1 - J2, T>(
      T(a.base() / b.base()));
}

// Scaling by a plain number or an autodiff scalar.
template <int B, int F, int S, int U, int J, class T1, class T2>
requires(requires(T1 a, T2 b) { a* b; }) constexpr auto operator*(
    const Quantity<B, F, S, U, J, T1>& a, const T2& k) {
  using T = internal::Common<T1, T2>;
  return Quantity<B, F, S, U, J, T>(T(a.base() * k));
}
template <int B, int F, int S, int U, int J, class T1, class T2>
requires(requires(T1 a, T2 b) { a* b; }) constexpr auto operator*(
    const T2& k, const Quantity<B, F, S, U, J, T1>& a) {
  return a * k;
}
template <int B, int F, int S, int U, int J, class T1, class T2>
requires(requires(T1 a, T2 b) { a / b; }) constexpr auto operator/(
    const Quantity<B, F, S, U, J, T1>& a, const T2& k) {
  using T = internal::Common<T1, T2>;
  return Quantity<B, F, S, U, J, T>(T(a.base() / k));
}

// Makers. Each takes a number in the named unit.
template <class T>
constexpr auto Second(T value) {
  return Seconds<T>(value);
}
constexpr Seconds<> Milliseconds(double value) {
  return Seconds<>(value * 1e-3);
}
constexpr Seconds<> Microseconds(double value) {
  return Seconds<>(value * 1e-6);
}
constexpr Bytes<> Byte(double value) { return Bytes<>(value); }
constexpr Bytes<> KiB(double value) { return Bytes<>(value * 1024.0); }
constexpr Bytes<> MiB(double value) { return Bytes<>(value * 1048576.0); }
constexpr Bytes<> GiB(double value) { return Bytes<>(value * 1073741824.0); }
constexpr Bytes<> MB(double value) { return Bytes<>(value * 1e6); }
constexpr Bytes<> GB(double value) { return Bytes<>(value * 1e9); }
constexpr Flops<> Flop(double value) { return Flops<>(value); }
constexpr BytesPerSecond<> GBPerSecond(double value) {
  return BytesPerSecond<>(value * 1e9);
}
constexpr Usd<> Dollars(double value) { return Usd<>(value); }
constexpr UsdPerSecond<> DollarsPerHour(double value) {
  return UsdPerSecond<>(value / 3600.0);
}
constexpr Watts<> Watt(double value) { return Watts<>(value); }
constexpr Hertz<> Megahertz(double value) { return Hertz<>(value * 1e6); }

// Readers, for the edges of the program.
constexpr double ToSeconds(Seconds<> value) { return value.base(); }
constexpr double ToBytes(Bytes<> value) { return value.base(); }
constexpr double ToDollars(Usd<> value) { return value.base(); }
constexpr double ToDollarsPerHour(UsdPerSecond<> value) {
  return value.base() * 3600.0;
}
constexpr double ToWatts(Watts<> value) { return value.base(); }
constexpr double ToJoules(Joules<> value) { return value.base(); }

}  // namespace trainfare::model
