#include "engine/node/levels/incoming.hpp"

#include "engine/node/publish.hpp"
#include "store/names.hpp"

namespace diapause::engine {

Result<IncomingSink> IncomingSink::create(const Incoming& incoming) {
  IncomingSink sink(incoming);
  if (incoming.slot.mapping().empty()) {
    DIAPAUSE_TRY_ASSIGN(sink.writer_, capture::StreamWriter::create(incoming.slot.file(), 0));
  }
  return sink;
}

Result<std::vector<IncomingSink>> make_sinks(const std::vector<Incoming>& incoming) {
  std::vector<IncomingSink> sinks;
  for (const Incoming& one : incoming) {
    DIAPAUSE_TRY_ASSIGN(IncomingSink sink, IncomingSink::create(one));
    sinks.push_back(std::move(sink));
  }
  return sinks;
}

// Where the slot is no memory, the file is read back from its final place.
Status keep_incoming(const Context& context, Catalogue& catalogue, const Work& work,
                     Incoming incoming) {
  const std::string name = store::image_name(incoming.owner);
  const store::ExpectedImage expected = store::expected_image(work.manifest, incoming.owner);
  if (!incoming.slot.mapping().empty()) {
    auto bytes = capture::memory_bytes(incoming.slot.mapping(), incoming.bytes);
    DIAPAUSE_TRY_ASSIGN(
        store::ImageReader reader,
        store::ImageReader::open(std::move(bytes), "the copy of " + name, expected));
    DIAPAUSE_TRY(reader.verify());
    return keep(context, catalogue, work, std::move(incoming.slot), name);
  }
  DIAPAUSE_TRY(keep(context, catalogue, work, std::move(incoming.slot), name));
  store::Tier* tier = context.tiers.find(work.node_tier);
  DIAPAUSE_TRY_ASSIGN(store::ImageReader reader,
                      tier->open_image(work.manifest.version, name, expected));
  return reader.verify();
}

}  // namespace diapause::engine
