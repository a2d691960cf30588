// Goal: the library says nothing on stderr, and its errors reach our messages.
// Method: its loggers are called while stderr is captured.

#include "model/llama_log.h"

#include <ggml.h>
#include <gtest/gtest.h>
#include <llama.h>

namespace vericache::model {
namespace {

TEST(LlamaErrors, CollectsErrorsAndDropsTheRest) {
  ::testing::internal::CaptureStderr();
  {
    const LlamaErrors errors;
    EXPECT_EQ(errors.Text("nothing"), "nothing");
    llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    EXPECT_EQ(llama_model_load_from_file("/nowhere/x.gguf", params), nullptr);
    EXPECT_NE(errors.Text("nothing").find("/nowhere/x.gguf"), std::string::npos) << errors.Text("");
    EXPECT_EQ(errors.Text("").find('\n'), std::string::npos);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(LlamaErrors, StaysQuietAfterwards) {
  { const LlamaErrors errors; }
  ::testing::internal::CaptureStderr();
  llama_model_params params = llama_model_default_params();
  params.vocab_only = true;
  EXPECT_EQ(llama_model_load_from_file("/nowhere/x.gguf", params), nullptr);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace vericache::model
