#include "model/tokenizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <llama.h>

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <unordered_set>

#include "base/check.h"
#include "model/bounded_reader.h"
#include "model/gguf_file.h"
#include "model/llama_log.h"
#include "model/text_cuts.h"

namespace vericache::model {
namespace {

constexpr uint64_t kMaxTokenBytes = uint64_t{1} << 16;
// Longest stretch without a change between space and text that is tokenised as a whole, in
// characters: splitting words is recursive in libllama for some vocabularies and overflows its
// stack at 26 thousand.
constexpr size_t kMaxStretch = 8192;
constexpr size_t kMaxControlBytes = 128;  // longer than the text of any control token

struct ModelDeleter {
  void operator()(llama_model* model) const { llama_model_free(model); }
};
using VocabularyModel = std::unique_ptr<llama_model, ModelDeleter>;

// The kinds of tokenizer that models of our architectures have: byte-level BPE and SentencePiece.
// libllama knows more, and aborts on some of their malformed files.
constexpr std::string_view kTokenizerModels[] = {"gpt2", "llama"};

Status CheckKind(const GgufFile& file) {
  const Result<std::string> kind = file.String("tokenizer.ggml.model");
  if (!kind) {
    return MakeError(ErrorCode::kUnsupported,
                     "{}: has no tokenizer (key \"tokenizer.ggml.model\" is missing)", file.Path());
  }
  if (std::ranges::find(kTokenizerModels, *kind) != std::end(kTokenizerModels)) return {};
  return MakeError(ErrorCode::kUnsupported, "{}: tokenizer \"{}\" is not supported; these are: {}",
                   file.Path(), *kind, fmt::join(kTokenizerModels, ", "));
}

// Checks what libllama takes for granted and would abort on.
Status CheckTokens(const GgufFile& file) {
  const char* const key = "tokenizer.ggml.tokens";
  const GgufValue* tokens = file.Find(key);
  if (tokens == nullptr) {
    return MakeError(ErrorCode::kUnsupported, "{}: has no tokenizer (key \"{}\" is missing)",
                     file.Path(), key);
  }
  if (!tokens->is_array || tokens->type != GgufType::kString || tokens->n_elements == 0) {
    return MakeError(ErrorCode::kDataLoss, "{}: key \"{}\" is not a list of strings", file.Path(),
                     key);
  }
  BoundedReader reader(file.File(), tokens->offset);
  std::unordered_set<std::string> seen;
  for (uint64_t i = 0; i < tokens->n_elements && reader.IsGood(); ++i) {
    std::string token = reader.ReadString(key, kMaxTokenBytes);
    if (token.empty()) token = fmt::format("[EMPTY_{}]", i);  // what libllama calls it
    if (!seen.insert(std::move(token)).second) {
      reader.Fail(ErrorCode::kDataLoss, "token {} of key \"{}\" appears twice", i, key);
    }
  }
  return reader.GetStatus();
}

Result<VocabularyModel> LoadVocabulary(const std::string& path) {
  const LlamaErrors errors;
  llama_model_params params = llama_model_default_params();
  params.vocab_only = true;
  try {
    VocabularyModel model(llama_model_load_from_file(path.c_str(), params));
    if (model != nullptr) return model;
  } catch (const std::exception& error) {
    return MakeError(ErrorCode::kDataLoss, "{}: the tokenizer cannot be read: {}", path,
                     error.what());
  }
  return MakeError(ErrorCode::kDataLoss, "{}: the tokenizer cannot be read: {}", path,
                   errors.Text("no reason given"));
}

class LlamaTokenizer final : public Tokenizer {
 public:
  explicit LlamaTokenizer(VocabularyModel model)
      : model_(std::move(model)), vocab_(llama_model_get_vocab(model_.get())) {
    byte_tokens_.fill(-1);
    for (int id = VocabSize() - 1; id >= 0; --id) {
      const std::string piece = Piece(TokenId{id});
      if (piece.size() == 1) byte_tokens_[static_cast<uint8_t>(piece[0])] = id;
    }
  }

  std::vector<TokenId> Encode(std::string_view text) const override {
    return EncodeBytes(text, false);
  }
  std::vector<TokenId> EncodeWithControl(std::string_view text) const override {
    return EncodeBytes(text, true);
  }

  std::string Piece(TokenId token) const override {
    if (token.value < 0 || token.value >= VocabSize()) return {};
    std::string piece(32, '\0');
    int n = ToPiece(token, piece);
    if (n < 0) {
      piece.resize(static_cast<size_t>(-n));
      n = ToPiece(token, piece);
    }
    piece.resize(static_cast<size_t>(std::max(n, 0)));
    return piece;
  }

  bool IsEndOfGeneration(TokenId token) const override {
    return token.value >= 0 && token.value < VocabSize() && llama_vocab_is_eog(vocab_, token.value);
  }
  TokenId Bos() const override {
    return TokenId{llama_vocab_get_add_bos(vocab_) ? llama_vocab_bos(vocab_) : -1};
  }
  int VocabSize() const override { return llama_vocab_n_tokens(vocab_); }
  const llama_vocab* Vocab() const override { return vocab_; }

 private:
  int ToPiece(TokenId token, std::string& piece) const {
    return llama_token_to_piece(vocab_, token.value, piece.data(),
                                static_cast<int32_t>(piece.size()), 0, false);
  }

  // libllama replaces bytes that are not UTF-8; we give them their byte tokens, so that every text
  // comes back as it was.
  std::vector<TokenId> EncodeBytes(std::string_view text, bool with_control) const {
    std::vector<TokenId> tokens;
    while (!text.empty()) {
      const size_t n_valid = ValidUtf8Prefix(text);
      EncodeText(text.substr(0, n_valid), with_control, tokens);
      text.remove_prefix(n_valid);
      for (; !text.empty() && ValidUtf8Prefix(text.substr(0, 4)) == 0; text.remove_prefix(1)) {
        const int token = byte_tokens_[static_cast<uint8_t>(text[0])];
        if (token >= 0) {
          tokens.emplace_back(token);
        } else {
          EncodeText(text.substr(0, 1), false, tokens);
        }
      }
    }
    return tokens;
  }

  void EncodeText(std::string_view text, bool with_control, std::vector<TokenId>& tokens) const {
    const bool is_split_by_words = llama_vocab_type(vocab_) == LLAMA_VOCAB_TYPE_BPE;
    while (!text.empty()) {
      size_t n_bytes = is_split_by_words ? EndOfLongStretch(text, kMaxStretch) : text.size();
      while (with_control && n_bytes < text.size() && HasControlNear(text, n_bytes)) {
        n_bytes = CharacterBoundary(text, n_bytes + kMaxControlBytes);
      }
      EncodePiece(text.substr(0, n_bytes), with_control, tokens);
      text.remove_prefix(n_bytes);
    }
  }

  bool HasControlNear(std::string_view text, size_t offset) const {
    const size_t begin = CharacterBoundary(text, offset - std::min(offset, kMaxControlBytes));
    const std::string_view window =
        text.substr(begin, CharacterBoundary(text, offset + kMaxControlBytes) - begin);
    std::vector<TokenId> plain;
    std::vector<TokenId> special;
    EncodePiece(window, false, plain);
    EncodePiece(window, true, special);
    return plain != special;
  }

  void EncodePiece(std::string_view text, bool with_control, std::vector<TokenId>& tokens) const {
    VC_CHECK(text.size() < static_cast<size_t>(std::numeric_limits<int32_t>::max()),
             "{} bytes of text", text.size());
    std::vector<llama_token> ids(text.size() + 2);
    const auto encode = [&] {
      return llama_tokenize(vocab_, text.data(), static_cast<int32_t>(text.size()), ids.data(),
                            static_cast<int32_t>(ids.size()), false, with_control);
    };
    int n = encode();
    if (n < 0) {
      ids.resize(static_cast<size_t>(-n));
      n = encode();
    }
    VC_CHECK(n >= 0, "llama_tokenize returned {} for {} bytes", n, text.size());
    for (int i = 0; i < n; ++i) tokens.emplace_back(ids[static_cast<size_t>(i)]);
  }

  VocabularyModel model_;
  const llama_vocab* vocab_;
  std::array<int, 256> byte_tokens_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::Load(const std::string& gguf_path) {
  {
    const Result<GgufFile> file = GgufFile::Open(gguf_path);
    if (!file) return tl::unexpected(file.error());
    VC_RETURN_IF_ERROR(CheckKind(*file));
    VC_RETURN_IF_ERROR(CheckTokens(*file));
  }
  Result<VocabularyModel> model = LoadVocabulary(gguf_path);
  if (!model) return tl::unexpected(model.error());
  return std::make_unique<LlamaTokenizer>(std::move(*model));
}

}  // namespace vericache::model
