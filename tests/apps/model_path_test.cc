// Goal: a model is found by path or by name, and a missing one is explained.
#include "apps/model_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace vericache::apps {
namespace {

using ::testing::HasSubstr;

class ModelPath : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_ / "models");
    setenv("VERICACHE_CACHE", folder_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("VERICACHE_CACHE");
    std::filesystem::remove_all(folder_);
  }
  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) / ("model_path_" + std::to_string(getpid()));
};

TEST_F(ModelPath, TakesAFileThatExists) {
  const std::string file = folder_ / "some.gguf";
  std::ofstream(file) << "x";
  EXPECT_EQ(ResolveModelPath(file).value(), file);
}

TEST_F(ModelPath, LooksUpAKnownNameInTheCacheFolder) {
  const std::string file = folder_ / "models" / "smollm2-135m.gguf";
  std::ofstream(file) << "x";
  EXPECT_EQ(ResolveModelPath("smollm2-135m").value(), file);
}

TEST_F(ModelPath, SaysHowToFetchAKnownNameThatIsMissing) {
  const auto path = ResolveModelPath("qwen2.5-coder-0.5b");
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(path.error().message, HasSubstr("./dev model qwen2.5-coder-0.5b"));
}

TEST_F(ModelPath, ListsTheNamesForAnUnknownOne) {
  const auto path = ResolveModelPath("no-such-model");
  ASSERT_FALSE(path);
  EXPECT_THAT(path.error().message, HasSubstr("'no-such-model'"));
  EXPECT_THAT(path.error().message, HasSubstr("smollm2-135m"));
}

}  // namespace
}  // namespace vericache::apps
