// Implements the C functions about regions of memory.
#include <fmt/core.h>

#include <limits>

#include "capi/arguments.hpp"

namespace {

using diapause::Code;
using diapause::fail;
using diapause::Status;
using diapause::capi::described;
using diapause::capi::element_type;
using diapause::capi::engine_of;
using diapause::capi::guarded;
using diapause::capi::need;

// The error with the region that it is about.
diapause::Error of_region(const char* region, diapause::Error error) {
  if (region != nullptr) error.message = fmt::format("region '{}': {}", region, error.message);
  return error;
}

Status protect(diapause_t* instance, const char* region, void* data,
               diapause::format::Region description) {
  DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
  DIAPAUSE_TRY(need(region, "the region's name"));
  description.name = region;
  return engine->protect({std::move(description), static_cast<std::byte*>(data)});
}

}  // namespace

extern "C" {

int diapause_protect(diapause_t* instance, const char* region, void* data, uint64_t count,
                     diapause_type type) {
  return guarded([&]() -> Status {
    auto description = described(count, type);
    if (!description) return fail(of_region(region, description.error()));
    return protect(instance, region, data, std::move(*description));
  });
}

int diapause_protect_bytes(diapause_t* instance, const char* region, void* data, uint64_t count,
                           uint64_t element_bytes) {
  return guarded([&]() -> Status {
    diapause::format::Region description;
    description.element_bytes = element_bytes;
    description.count = count;
    return protect(instance, region, data, std::move(description));
  });
}

int diapause_protect_block(diapause_t* instance, const char* region, void* data, diapause_type type,
                           int dims, const uint64_t* shape, const uint64_t* global_shape,
                           const uint64_t* start) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY(need(region, "the region's name"));
    const auto element = element_type(type);
    if (!element) return fail(of_region(region, element.error()));
    if (dims < 1 || dims > static_cast<int>(diapause::format::kMaxDims)) {
      return fail(Code::argument, fmt::format("region '{}': {} dimensions: a block has 1 to {}",
                                              region, dims, diapause::format::kMaxDims));
    }
    DIAPAUSE_TRY(need(shape, "the shape"));
    DIAPAUSE_TRY(need(global_shape, "the global shape"));
    DIAPAUSE_TRY(need(start, "the start"));
    diapause::format::Region description;
    description.type = *element;
    description.element_bytes = diapause::format::element_bytes_of(*element);
    description.count = 1;
    for (int i = 0; i < dims; ++i) {
      if (shape[i] > global_shape[i] || start[i] > global_shape[i] - shape[i]) {
        return fail(
            Code::argument,
            fmt::format("region '{}': dimension {}: {} elements from {} on do not lie in {}",
                        region, i, shape[i], start[i], global_shape[i]));
      }
      if (shape[i] != 0 && description.count > std::numeric_limits<uint64_t>::max() / shape[i]) {
        return fail(
            Code::argument,
            fmt::format("region '{}': the block has more elements than there can be", region));
      }
      description.count *= shape[i];
      description.place.push_back({shape[i], global_shape[i], start[i]});
    }
    return protect(instance, region, data, std::move(description));
  });
}

int diapause_unprotect(diapause_t* instance, const char* region) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    DIAPAUSE_TRY(need(region, "the region's name"));
    return engine->unprotect(region);
  });
}

int diapause_declare(diapause_t* instance, const char* region, diapause_declaration declaration) {
  return guarded([&]() -> Status {
    using diapause::capture::Declaration;
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    DIAPAUSE_TRY(need(region, "the region's name"));
    const int number = declaration;
    if (number < DIAPAUSE_CHANGING || number > DIAPAUSE_CONSTANT) {
      return fail(
          Code::argument,
          fmt::format("region '{}': there is no declaration of number {}; they are {} to {}",
                      region, number, int{DIAPAUSE_CHANGING}, int{DIAPAUSE_CONSTANT}));
    }
    constexpr Declaration kDeclarations[] = {Declaration::changing, Declaration::stable,
                                             Declaration::constant};
    return engine->declare(region, kDeclarations[number]);
  });
}

int diapause_allow_loss(diapause_t* instance, const char* region, diapause_lossy_codec codec,
                        double bound) {
  return guarded([&]() -> Status {
    using diapause::codec::CodecId;
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    DIAPAUSE_TRY(need(region, "the region's name"));
    const int number = codec;
    if (number < DIAPAUSE_LATTICE || number > DIAPAUSE_ZFP) {
      return fail(
          Code::argument,
          fmt::format("region '{}': there is no lossy codec of number {}; they are {} to {}",
                      region, number, int{DIAPAUSE_LATTICE}, int{DIAPAUSE_ZFP}));
    }
    constexpr CodecId kCodecs[] = {CodecId::lattice, CodecId::sz3, CodecId::zfp};
    return engine->allow_loss(region, {kCodecs[number], bound});
  });
}

int diapause_keep_invariant(diapause_t* instance, const char* const* regions, uint64_t count,
                            diapause_invariant holds, void* context) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    DIAPAUSE_TRY(need(regions, "the list of names"));
    if (holds == nullptr) return fail(Code::argument, "the invariant is NULL");
    diapause::library::Invariant invariant;
    for (uint64_t i = 0; i < count; ++i) {
      DIAPAUSE_TRY(need(regions[i], "a region's name"));
      invariant.regions.emplace_back(regions[i]);
    }
    invariant.holds = [holds, context](std::span<const diapause::ByteView> views) {
      std::vector<const void*> values;
      for (const diapause::ByteView view : views) values.push_back(view.data());
      return holds(values.data(), context) != 0;
    };
    return engine->keep_invariant(std::move(invariant));
  });
}

int diapause_inject_bit_flip(diapause_t* instance, const char* region, uint64_t element,
                             uint32_t bit) {
  return guarded([&]() -> Status {
    DIAPAUSE_TRY_ASSIGN(diapause::library::Engine* const engine, engine_of(instance));
    DIAPAUSE_TRY(need(region, "the region's name"));
    return engine->inject_bit_flip(region, element, bit);
  });
}

}  // extern "C"
