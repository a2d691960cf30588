#include "base/exact_math.h"

#include <bit>
#include <cstdint>

#include "base/check.h"

namespace vericache {
namespace {

// An unevaluated sum, |low| <= ulp(high) / 2: about 106 bits.
struct Pair {
  double high;
  double low;
};

// The exact sum, if |a| >= |b|.
Pair QuickTwoSum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

// The exact sum.
Pair TwoSum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

// The exact product, by splitting each factor into halves of 26 bits (Dekker).
Pair TwoProduct(double a, double b) {
  constexpr double kSplit = 134217729.0;  // 2^27 + 1
  const double a_scaled = a * kSplit;
  const double b_scaled = b * kSplit;
  const double a_high = a_scaled - (a_scaled - a);
  const double b_high = b_scaled - (b_scaled - b);
  const double a_low = a - a_high;
  const double b_low = b - b_high;
  const double product = a * b;
  return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

Pair Multiply(Pair a, double b) {
  const Pair product = TwoProduct(a.high, b);
  return QuickTwoSum(product.high, product.low + a.low * b);
}

Pair Multiply(Pair a, Pair b) {
  const Pair product = TwoProduct(a.high, b.high);
  return QuickTwoSum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

Pair Add(Pair a, Pair b) {
  const Pair sum = TwoSum(a.high, b.high);
  return QuickTwoSum(sum.high, sum.low + (a.low + b.low));
}

// Rounds |x| < 2^51 to an integer, ties to even.
double RoundToInteger(double x) {
  constexpr double kBias = 6755399441055744.0;  // 1.5 * 2^52
  return (x + kBias) - kBias;
}

// 2^n for |n| <= 1022.
double PowerOfTwo(int64_t n) {
  return std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52);
}

// x = mantissa * 2^exponent with mantissa in [sqrt(1/2), sqrt(2)).
struct Scaled {
  double mantissa;
  double exponent;
};
Scaled SplitExponent(double x) {
  constexpr uint64_t kOne = 0x3ff0000000000000u;
  constexpr uint64_t kFraction = 0x000fffffffffffffu;
  constexpr uint64_t kSqrt2Fraction = 0x6a09e667f3bcdu;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  VC_CHECK(x > 0 && (bits >> 52) != 0 && (bits >> 52) < 0x7ff, "x = {}", x);
  const bool is_upper = (bits & kFraction) >= kSqrt2Fraction;
  const int64_t exponent = static_cast<int64_t>(bits >> 52) - 1023 + (is_upper ? 1 : 0);
  const double mantissa = std::bit_cast<double>((bits & kFraction) | kOne) * (is_upper ? 0.5 : 1.0);
  return {mantissa, static_cast<double>(exponent)};
}

// ln(m) for m in [sqrt(1/2), sqrt(2)): 2 atanh(s), s = (m - 1) / (m + 1), |s| <= 0.1716.
Pair LogOfMantissa(double m) {
  const double numerator = m - 1.0;  // exact
  const Pair denominator = TwoSum(m, 1.0);
  const double s = numerator / denominator.high;
  const Pair back = TwoProduct(s, denominator.high);
  const double s_low =
      (((numerator - back.high) - back.low) - s * denominator.low) / denominator.high;
  // The terms behind s: s^3/3 + s^5/5 + ... + s^25/25.
  const double z = s * s;
  constexpr double kOdd[] = {1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13,
                             1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25};
  double tail = kOdd[11];
  for (int i = 10; i >= 0; --i) tail = tail * z + kOdd[i];
  tail = tail * z * s;
  return QuickTwoSum(2.0 * s, 2.0 * (s_low + tail));
}

constexpr Pair kLn2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
constexpr Pair kLog2E = {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};

// e^u for |u| <= 0.35: the Taylor series up to u^14.
double ExpOfFraction(Pair u) {
  constexpr double kInverseFactorial[] = {
      1.0 / 2,         1.0 / 6,          1.0 / 24,         1.0 / 120,     1.0 / 720,
      1.0 / 5040,      1.0 / 40320,      1.0 / 362880,     1.0 / 3628800, 1.0 / 39916800,
      1.0 / 479001600, 1.0 / 6227020800, 1.0 / 87178291200};
  double sum = kInverseFactorial[12];
  for (int i = 11; i >= 0; --i) sum = sum * u.high + kInverseFactorial[i];
  // 1 + u + u^2 * sum, small terms first; e^(h+l) = e^h + l e^h.
  const double square = u.high * u.high * sum;
  return 1.0 + (u.high + (square + (u.low + u.low * u.high)));
}

}  // namespace

double ExactLog(double x) {
  const Scaled scaled = SplitExponent(x);
  const Pair log = Add(Multiply(kLn2, scaled.exponent), LogOfMantissa(scaled.mantissa));
  return log.high + log.low;
}

double ExactPow(double base, double exponent) {
  const Scaled scaled = SplitExponent(base);
  const Pair log2 = Add({scaled.exponent, 0.0}, Multiply(kLog2E, LogOfMantissa(scaled.mantissa)));
  const Pair power = Multiply(log2, exponent);
  VC_CHECK(power.high >= -1000.0 && power.high <= 1000.0, "{}^{}", base, exponent);
  const double n = RoundToInteger(power.high);
  const Pair fraction = QuickTwoSum(power.high - n, power.low);
  return ExpOfFraction(Multiply(kLn2, fraction)) * PowerOfTwo(static_cast<int64_t>(n));
}

SinCos ExactSinCos(double angle) {
  VC_CHECK(angle >= -1e8 && angle <= 1e8, "angle = {}", angle);
  // pi/2 cut at 2^-26, 2^-53 and 2^-80. n has at most 26 bits, so n times a part is exact, and the
  // first two differences are: both sides are multiples of 2^-53 below 1.
  constexpr double kPart1 = 0x1.921fb54p+0;
  constexpr double kPart2 = 0x1.10b46p-30;
  constexpr double kPart3 = 0x1.1a6263p-54;
  constexpr double kRest = 0x1.8a2e03707344ap-81;
  const double n = RoundToInteger(angle * 0x1.45f306dc9c883p-1);  // times 2/pi
  const double coarse = (angle - n * kPart1) - n * kPart2;
  const Pair fine = TwoSum(coarse, -(n * kPart3));
  const Pair r = QuickTwoSum(fine.high, fine.low - n * kRest);

  // |r| <= pi/4. Taylor series to r^17 and r^18; r.low enters by its first derivative.
  const double z = r.high * r.high;
  double s = 1.0 / 355687428096000.0;  // 1/17!
  s = s * z - 1.0 / 1307674368000.0;   // 1/15!
  s = s * z + 1.0 / 6227020800.0;      // 1/13!
  s = s * z - 1.0 / 39916800.0;        // 1/11!
  s = s * z + 1.0 / 362880.0;          // 1/9!
  s = s * z - 1.0 / 5040.0;            // 1/7!
  s = s * z + 1.0 / 120.0;             // 1/5!
  s = s * z - 1.0 / 6.0;               // 1/3!
  const double sine = r.high + (r.high * z * s + r.low * (1.0 - 0.5 * z));
  double c = -1.0 / 6402373705728000.0;  // 1/18!
  c = c * z + 1.0 / 20922789888000.0;    // 1/16!
  c = c * z - 1.0 / 87178291200.0;       // 1/14!
  c = c * z + 1.0 / 479001600.0;         // 1/12!
  c = c * z - 1.0 / 3628800.0;           // 1/10!
  c = c * z + 1.0 / 40320.0;             // 1/8!
  c = c * z - 1.0 / 720.0;               // 1/6!
  c = c * z + 1.0 / 24.0;                // 1/4!
  const double half = 0.5 * z;
  const double near_one = 1.0 - half;
  const double cosine = near_one + (((1.0 - near_one) - half) + (z * z * c - r.high * r.low));

  switch (static_cast<int64_t>(n) & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

}  // namespace vericache
