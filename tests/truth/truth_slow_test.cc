// Goal: our arithmetic is as close to F32 arithmetic as llama.cpp's on the same GGUF, on licence
// text and code.
// Method: teacher-forced windows of 2,048 tokens; three engines see the same ids: ours, libllama
// as it comes (F16 KV), and libllama on a copy of the model dequantised to F32 with an F32 KV,
// the yardstick. Per position: KL(F32 || engine) in binary64 and the top tokens.
// VERICACHE_TRUTH_TOKENS sets the tokens per text (the published figures use 8192). With fewer the
// bound on the agreement is wider by two of its standard deviations: it is a share of a sample.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <unistd.h>

#include "kernels/kernels.h"
#include "kv/full_kv.h"
#include "model/forward.h"
#include "model/model.h"
#include "model/tokenizer.h"
#include "tests/support/real_model.h"
#include "tests/truth/llama_peer.h"

namespace vericache {
namespace {

using testing_support::LlamaPeer;
using testing_support::PeerKv;

constexpr int kWindow = 2048;
constexpr int kBatch = 256;

struct Tally {
  double kl_ours = 0;
  double kl_peer = 0;
  double kl_ours_max = 0;
  double kl_peer_max = 0;
  int ours_is_f32 = 0;  // top-1 agreement
  int peer_is_f32 = 0;
  int ours_is_peer = 0;
  int n = 0;
};

int TopToken(std::span<const float> logits) {
  return static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

double LogSumExp(std::span<const float> logits) {
  const double top = logits[static_cast<size_t>(TopToken(logits))];
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - top);
  return top + std::log(sum);
}

double Kl(std::span<const float> p, std::span<const float> q) {
  const double p_norm = LogSumExp(p);
  const double q_norm = LogSumExp(q);
  double kl = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double log_p = p[i] - p_norm;
    kl += std::exp(log_p) * (log_p - (q[i] - q_norm));
  }
  return kl;
}

void Add(Tally& tally, std::span<const float> f32, std::span<const float> ours,
         std::span<const float> peer) {
  const double kl_ours = Kl(f32, ours);
  const double kl_peer = Kl(f32, peer);
  tally.kl_ours += kl_ours;
  tally.kl_peer += kl_peer;
  tally.kl_ours_max = std::max(tally.kl_ours_max, kl_ours);
  tally.kl_peer_max = std::max(tally.kl_peer_max, kl_peer);
  tally.ours_is_f32 += TopToken(ours) == TopToken(f32);
  tally.peer_is_f32 += TopToken(peer) == TopToken(f32);
  tally.ours_is_peer += TopToken(ours) == TopToken(peer);
  ++tally.n;
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

int TokensPerText() {
  const char* wanted = std::getenv("VERICACHE_TRUTH_TOKENS");
  return wanted == nullptr ? 1024 : std::atoi(wanted);
}

double MinAgreement(int n_tokens) {
  constexpr double kShare = 0.96;
  constexpr int kEnough = 8192;
  return n_tokens >= kEnough ? kShare : kShare - 2 * std::sqrt(kShare * (1 - kShare) / n_tokens);
}

// The code text: this project's own sources, in a fixed order.
std::string CodeText() {
  std::vector<std::string> paths;
  const std::string root = std::string(VERICACHE_SOURCE_DIR) + "/src";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".cc") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::string text;
  for (const std::string& path : paths) text += ReadText(path);
  return text;
}

class Truth : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string path = testing_support::RealModelPath(GetParam());
    ASSERT_FALSE(HasFailure());
    f32_path_ = std::filesystem::temp_directory_path() /
                fmt::format("vericache_truth_{}_{}.gguf", GetParam(), ::getpid());
    ASSERT_TRUE(testing_support::WriteF32Copy(path, f32_path_));
    auto model = model::Model::Load(path, team_);
    ASSERT_TRUE(model.has_value()) << model.error().message;
    model_ = std::move(*model);
    auto tokenizer = model::Tokenizer::Load(path);
    ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
    tokenizer_ = std::move(*tokenizer);
    peer_ = std::make_unique<LlamaPeer>(path, PeerKv::kF16, kWindow);
    f32_ = std::make_unique<LlamaPeer>(f32_path_, PeerKv::kF32, kWindow);
    ASSERT_TRUE(peer_->IsReady());
    ASSERT_TRUE(f32_->IsReady());
  }
  void TearDown() override { std::filesystem::remove(f32_path_); }

  // One window from an empty context.
  void RunWindow(std::span<const TokenId> tokens, Tally& tally) {
    kv::BlockPool pool(model_->Config().Kv(), kv::FullKvBytesPerToken(model_->Config().Kv()) *
                                                  (kWindow + 2 * kv::kBlockTokens));
    kv::FullKv kv(pool);
    model::Pass pass(*model_, **kernels::SelectKernels("auto"), team_, kBatch);
    peer_->Clear();
    f32_->Clear();
    for (size_t begin = 0; begin < tokens.size(); begin += kBatch) {
      const auto part = tokens.subspan(begin, std::min<size_t>(kBatch, tokens.size() - begin));
      const int first = static_cast<int>(begin);
      const int n = static_cast<int>(part.size());
      ASSERT_TRUE(kv.Reserve(first + n).has_value());
      const std::vector<model::RowGroup> groups = {{.tokens = part,
                                                    .first_position = Position{first},
                                                    .kv = &kv,
                                                    .logits = model::LogitRows::kAll}};
      const model::GroupLogits ours = pass.Run(groups)[0];
      kv.Commit(n);
      const std::vector<float> peer = peer_->Logits(part, first);
      const std::vector<float> f32 = f32_->Logits(part, first);
      const size_t n_vocab = static_cast<size_t>(ours.n_vocab);
      for (int row = 0; row < n; ++row) {
        const size_t at = static_cast<size_t>(row) * n_vocab;
        Add(tally, {f32.data() + at, n_vocab}, ours.Row(row), {peer.data() + at, n_vocab});
      }
    }
  }

  void Check(const char* kind, const std::string& text) {
    const int n_tokens = TokensPerText();
    const std::vector<TokenId> ids = tokenizer_->Encode(text);
    ASSERT_GE(static_cast<int>(ids.size()), n_tokens) << kind;
    Tally tally;
    for (int begin = 0; begin < n_tokens; begin += kWindow) {
      const int n = std::min(kWindow, n_tokens - begin);
      RunWindow(std::span(ids).subspan(static_cast<size_t>(begin), static_cast<size_t>(n)), tally);
    }
    const double n = tally.n;
    fmt::print(
        "{} {} {} tokens: KL to F32 ours {:.3e} (max {:.2e}), llama.cpp {:.3e} (max {:.2e}), ratio "
        "{:.3f}; top-1 agreement ours:llama.cpp {:.4f}, ours:F32 {:.4f}, llama.cpp:F32 {:.4f}\n",
        GetParam(), kind, tally.n, tally.kl_ours / n, tally.kl_ours_max, tally.kl_peer / n,
        tally.kl_peer_max, tally.kl_ours / tally.kl_peer, tally.ours_is_peer / n,
        tally.ours_is_f32 / n, tally.peer_is_f32 / n);
    EXPECT_LE(tally.kl_ours, 1.05 * tally.kl_peer) << kind;
    EXPECT_GE(tally.ours_is_peer / n, MinAgreement(tally.n)) << kind;
  }

  ThreadTeam team_{2};
  std::filesystem::path f32_path_;
  std::unique_ptr<model::Model> model_;
  std::unique_ptr<model::Tokenizer> tokenizer_;
  std::unique_ptr<LlamaPeer> peer_;
  std::unique_ptr<LlamaPeer> f32_;
};

TEST_P(Truth, LicenceTextIsAsCloseToF32AsLlamaCpp) {
  Check("licence", ReadText(VERICACHE_SOURCE_DIR "/eval/documents/three_licences.txt") +
                       ReadText(VERICACHE_SOURCE_DIR "/LICENSE"));
}

TEST_P(Truth, CodeIsAsCloseToF32AsLlamaCpp) { Check("code", CodeText()); }

INSTANTIATE_TEST_SUITE_P(Models, Truth, ::testing::Values("smollm2-135m", "qwen2.5-coder-0.5b"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return c == '-' || c == '.'; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace vericache
