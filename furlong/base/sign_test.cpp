#include "furlong/base/sign.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "furlong/base/hash.h"

namespace furlong {
namespace {

struct Vector {
  const char* seed;
  const char* public_key;
  const char* message;
  const char* signature;
};

// RFC 8032, section 7.1, tests 1 to 3.
const Vector vectors[] = {
    {"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
     "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
     "d25bf5f0595bbe24655141438e7a100b"},
    {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
     "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c"
     "387b2eaeb4302aeeb00d291612bb0c00"},
    {"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
     "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659"
     "4a7c15e9716ed28dc027beceea1ec40a"}};

TEST(Ed25519, Rfc8032) {
  for (const Vector& vector : vectors) {
    const auto pair = KeyPair::from_seed(*from_hex(vector.seed));
    ASSERT_TRUE(pair);
    EXPECT_EQ(pair->public_key.hex(), vector.public_key);
    EXPECT_EQ(to_hex(pair->seed()), vector.seed);
    const Bytes message = *from_hex(vector.message);
    const Signature signature = sign(message, *pair);
    EXPECT_EQ(to_hex(signature), vector.signature);
    EXPECT_TRUE(verify(message, signature, pair->public_key));
  }
}

TEST(Ed25519, AnyChangedBitIsDenied) {
  const KeyPair pair = KeyPair::generate();
  Bytes message = *from_hex("00112233");
  Signature signature = sign(message, pair);
  const auto denied = [&](const PublicKey& key) {
    const Status status = verify(message, signature, key);
    return !status && status.error().code() == Code::denied;
  };
  for (std::size_t byte = 0; byte < signature.size(); ++byte) {
    signature[byte] ^= 0x10;
    EXPECT_TRUE(denied(pair.public_key)) << "signature byte " << byte;
    signature[byte] ^= 0x10;
  }
  message[1] ^= 1;
  EXPECT_TRUE(denied(pair.public_key));
  message[1] ^= 1;
  EXPECT_TRUE(denied(KeyPair::generate().public_key));
  EXPECT_FALSE(denied(pair.public_key));
}

TEST(KeyPair, GeneratedOnesDiffer) {
  EXPECT_NE(KeyPair::generate().public_key, KeyPair::generate().public_key);
}

TEST(KeyPair, AWrongSeedIsInvalid) {
  const auto pair = KeyPair::from_seed(Bytes(31));
  ASSERT_FALSE(pair);
  EXPECT_EQ(pair.error().code(), Code::invalid);
}

TEST(PublicKey, ParsesItsHexAndHasAnId) {
  const PublicKey key = KeyPair::generate().public_key;
  EXPECT_EQ(*PublicKey::parse(key.hex()), key);
  EXPECT_EQ(key.id(), blake2b_256(ByteView(key.bytes)).hex().substr(0, 16));
  EXPECT_FALSE(PublicKey::parse("12"));
  EXPECT_FALSE(PublicKey::parse(std::string(63, '0') + "z"));
}

}  // namespace
}  // namespace furlong
