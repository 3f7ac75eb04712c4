#include "engine/job/gather.hpp"

#include "format/wire.hpp"

namespace diapause::engine {
namespace {

Result<std::vector<std::string>> texts_in(ByteView part, const char* what) {
  std::vector<std::string> texts;
  format::Reader reader(part);
  while (reader.remaining() > 0) {
    const std::uint64_t length = reader.u64();
    texts.push_back(reader.text(length));
    if (!reader.ok()) return fail(Code::comm, std::string(what) + " did not arrive whole");
  }
  return texts;
}

}  // namespace

Result<Gathered<std::string>> gather_texts(const Context& context, const Status& mine,
                                           std::span<const std::string> texts, const char* what) {
  format::Writer message(256);
  for (const std::string& text : texts) {
    message.u64(text.size());
    message.text(text);
  }
  DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> parts, agree_and_gather(context, mine, message.take()));
  Gathered<std::string> all;
  for (const ByteVector& part : parts) {
    DIAPAUSE_TRY_ASSIGN(std::vector<std::string> of_one, texts_in(part, what));
    all.push_back(std::move(of_one));
  }
  return all;
}

}  // namespace diapause::engine
