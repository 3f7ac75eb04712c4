#include "fabric/foreign.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace diapause::fabric {
namespace {

Status choice(const std::string& name, const std::string& value) {
  const std::vector<std::pair<std::string, std::string>> environment{{"HOME", "/"}, {name, value}};
  return check_choice(environment);
}

TEST(ForeignFabrics, AreNamedWithTheVariableThatChoosesThem) {
  const Status refused = choice("FI_PROVIDER", "cxi");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("FI_PROVIDER=cxi chooses 'cxi'"), std::string::npos);
  EXPECT_NE(refused.error().message.find("Set FI_PROVIDER=tcp instead"), std::string::npos);
  EXPECT_FALSE(choice("FI_PROVIDER", "efa;ofi_rxd"));
  EXPECT_FALSE(choice("OMPI_MCA_mtl", "psm2"));
  EXPECT_FALSE(choice("UCX_TLS", "sm,self,dc_mlx5"));
  EXPECT_FALSE(choice("I_MPI_OFI_PROVIDER", "psm2"));
}

TEST(ForeignFabrics, OtherChoicesPass) {
  for (const char* value : {"", "tcp", "^psm2", "^cxi,verbs", "tcp;ofi_rxm", "verbs;ofi_rxm"})
    EXPECT_TRUE(choice("FI_PROVIDER", value)) << value;
  for (const char* value : {"all", "rc_verbs,ud_verbs,sm,self", "rc,ud", "^dc"})
    EXPECT_TRUE(choice("UCX_TLS", value)) << value;
  EXPECT_TRUE(choice("OMPI_MCA_mtl", "^psm,psm2"));
  EXPECT_TRUE(choice("OTHER", "cxi"));
}

TEST(ForeignFabrics, TheirDevicesAreNamedWithWhatToSetInstead) {
  const auto trouble = [](const char* path) {
    return trouble_with_device(path, Way::by_our_library);
  };
  EXPECT_NE(trouble("/dev/infiniband/rdma_cm").find("UCX_SOCKADDR_TLS_PRIORITY=tcp"),
            std::string::npos);
  EXPECT_NE(trouble("/dev/hfi1_0").find("PSM"), std::string::npos);
  EXPECT_NE(trouble("/dev/cxi0").find("FI_PROVIDER=tcp"), std::string::npos);
  EXPECT_EQ(trouble("/dev/null"), "");
}

TEST(ForeignFabrics, VerbsAreOnesOfOursByTheLibraryOnly) {
  EXPECT_EQ(trouble_with_device("/dev/infiniband/uverbs0", Way::by_our_library), "");
  EXPECT_NE(trouble_with_device("/dev/infiniband/uverbs0", Way::otherwise), "");
}

}  // namespace
}  // namespace diapause::fabric
