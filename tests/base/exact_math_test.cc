// Goal: the functions are accurate, and give the same bits everywhere.
// Method: seeded sweeps against the platform's long double functions within 1 ulp, and golden
// bits checked once against 400-bit arithmetic (all correctly rounded but 2^0.5, which is 1 ulp
// low).
#include "base/exact_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>

namespace vericache {
namespace {

constexpr int kDraws = 40000;

uint64_t Bits(double x) { return std::bit_cast<uint64_t>(x); }

struct Sweep {
  double begin;
  double end;
  bool is_logarithmic = false;
};

// Largest error in units in the last place of the exact value.
double WorstUlp(const Sweep& sweep, const std::function<double(double)>& ours,
                const std::function<long double(long double)>& exact) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  double worst = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double t = uniform(random);
    const double x = sweep.is_logarithmic ? sweep.begin * std::pow(sweep.end / sweep.begin, t)
                                          : sweep.begin + (sweep.end - sweep.begin) * t;
    const long double expected = exact(static_cast<long double>(x));
    const double magnitude = std::fabs(static_cast<double>(expected));
    const double ulp = std::nextafter(magnitude, INFINITY) - magnitude;
    const auto error = static_cast<double>(std::fabs(static_cast<long double>(ours(x)) - expected));
    worst = std::max(worst, error / ulp);
  }
  return worst;
}

TEST(ExactLog, StaysWithinAnUlp) {
  const auto exact = [](long double x) { return std::log(x); };
  EXPECT_LT(WorstUlp({1e-300, 1.0, true}, ExactLog, exact), 0.6);
  EXPECT_LT(WorstUlp({0.5, 2.0}, ExactLog, exact), 0.6);
  EXPECT_LT(WorstUlp({1.0, 1e300, true}, ExactLog, exact), 0.6);
}

TEST(ExactPow, StaysWithinAnUlpForTheBasesOfRotaryEmbeddings) {
  for (const double base : {2.5, 1e4, 1e5, 5e5, 1e6, 1e7}) {
    const auto ours = [base](double x) { return ExactPow(base, x); };
    const auto exact = [base](long double x) {
      return std::pow(static_cast<long double>(base), x);
    };
    EXPECT_LT(WorstUlp({-1.0, 0.0}, ours, exact), 1.0) << base;
    EXPECT_LT(WorstUlp({-40.0, 40.0}, ours, exact), 1.0) << base;
  }
}

TEST(ExactSinCos, StaysWithinAnUlpUpToAHundredMillionRadians) {
  const auto sine = [](double x) { return ExactSinCos(x).sin; };
  const auto cosine = [](double x) { return ExactSinCos(x).cos; };
  const auto exact_sine = [](long double x) { return std::sin(x); };
  const auto exact_cosine = [](long double x) { return std::cos(x); };
  for (const double limit : {1.0, 1e2, 1e4, 1e6, 1e8}) {
    EXPECT_LT(WorstUlp({-limit, limit}, sine, exact_sine), 1.0) << limit;
    EXPECT_LT(WorstUlp({-limit, limit}, cosine, exact_cosine), 1.0) << limit;
  }
  EXPECT_LT(WorstUlp({1e-12, 1.0, true}, sine, exact_sine), 1.0);
}

TEST(ExactLog, HasItsGoldenBits) {
  constexpr struct {
    double x;
    uint64_t bits;
  } kGolden[] = {
      {0x1p-54, 0xc042b708872320e2},
      {0x1.56e1fc2f8f359p-997, 0xc085963447f87fb5},
      {0x1.999999999999ap-4, 0xc0026bb1bbb55515},
      {0x1p-1, 0xbfe62e42fefa39ef},
      {0x1.6a09e667f3bcdp-1, 0xbfd62e42fefa39ee},
      {0x1.fffffffffffffp-1, 0xbca0000000000000},
      {0x1p+0, 0x0000000000000000},
      {0x1.4p+1, 0x3fed5240f0e0e078},
      {0x1.388p+13, 0x40226bb1bbb55516},
  };
  for (const auto& golden : kGolden) EXPECT_EQ(Bits(ExactLog(golden.x)), golden.bits) << golden.x;
}

TEST(ExactPow, HasItsGoldenBits) {
  constexpr struct {
    double base;
    double exponent;
    uint64_t bits;
  } kGolden[] = {
      {0x1.388p+13, -0x1p-1, 0x3f847ae147ae147b},    {0x1.388p+13, -0x1p-5, 0x3fe7ff2224115d9a},
      {0x1.86ap+16, -0x1.fp-1, 0x3eee0d6d7acaba7b},  {0x1.e848p+19, -0x1.f8p-1, 0x3eb4d1c97f4e952f},
      {0x1.e848p+18, -0x1.ep-2, 0x3f61754816e07d6c}, {0x1p+1, 0x1p-1, 0x3ff6a09e667f3bcc},
      {0x1.8p+1, 0x1.08p+5, 0x4333bfefa65abb83},
  };
  for (const auto& golden : kGolden) {
    EXPECT_EQ(Bits(ExactPow(golden.base, golden.exponent)), golden.bits)
        << golden.base << "^" << golden.exponent;
  }
}

TEST(ExactSinCos, HasItsGoldenBits) {
  constexpr struct {
    double angle;
    uint64_t sin_bits;
    uint64_t cos_bits;
  } kGolden[] = {
      {0x0p+0, 0x0000000000000000, 0x3ff0000000000000},
      {0x1.12e0be826d695p-30, 0x3e112e0be826d695, 0x3ff0000000000000},
      {0x1p-1, 0x3fdeaee8744b05f0, 0x3fec1528065b7d50},
      {0x1.921fb54442d18p+0, 0x3ff0000000000000, 0x3c91a62633145c07},
      {0x1.8p+1, 0x3fc210386db6d55b, 0xbfefae04be85e5d2},
      {0x1.91p+6, 0xbfd1bf00980dc35c, 0x3feebec72ba6b0ec},
      {-0x1.fp+2, 0xbfefd3c0d19d91a6, 0x3fba924459c41abd},
      {0x1.fffc7df3b645ap+14, 0x3fd39f6613d4af80, 0x3fee7573430d2d5c},
      {0x1.e848p+19, 0xbfd6664b2568d867, 0x3fedf9df9906d32c},
      {0x1.7d783fep+26, 0x3fefbce0796026d5, 0x3fc05a261b478b80},
  };
  for (const auto& golden : kGolden) {
    const SinCos got = ExactSinCos(golden.angle);
    EXPECT_EQ(Bits(got.sin), golden.sin_bits) << golden.angle;
    EXPECT_EQ(Bits(got.cos), golden.cos_bits) << golden.angle;
  }
}

// Every bit of many results, folded (FNV-1a): a change of any step shows.
TEST(ExactMath, HasItsGoldenChecksum) {
  uint64_t hash = 0xcbf29ce484222325u;
  const auto fold = [&hash](double x) { hash = (hash ^ Bits(x)) * 0x100000001b3u; };
  for (int i = 1; i <= 4096; ++i) {
    fold(ExactLog(static_cast<double>(i) / 4097.0));
    fold(ExactPow(10000.0, -static_cast<double>(i) / 4096.0));
    const SinCos got = ExactSinCos(static_cast<double>(i) * 244.14);
    fold(got.sin);
    fold(got.cos);
  }
  EXPECT_EQ(hash, 0x63e5835a9d6434a1u);
}

TEST(ExactMathDeathTest, RefusesWhatItCannotReduce) {
  EXPECT_DEATH(ExactLog(0.0), "CHECK failed");
  EXPECT_DEATH(ExactLog(INFINITY), "CHECK failed");
  EXPECT_DEATH(ExactPow(10.0, 1000.0), "CHECK failed");
  EXPECT_DEATH(ExactSinCos(2e8), "CHECK failed");
  EXPECT_DEATH(ExactSinCos(NAN), "CHECK failed");
}

}  // namespace
}  // namespace vericache
