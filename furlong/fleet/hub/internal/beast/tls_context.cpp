#include "furlong/fleet/hub/internal/beast/tls_context.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <string>

#include "furlong/base/log.h"
#include "furlong/base/os/file.h"

namespace furlong::fleet {
namespace {

constexpr std::size_t most_pem_bytes = 1u << 20;
namespace ssl = boost::asio::ssl;
using boost::system::error_code;

/// What stands in an environment's errors is the last call's; another's must not be taken for it.
Error refused(const std::filesystem::path& file, const error_code& error, std::string_view mend) {
  ERR_clear_error();
  return fail(Code::invalid, "{}: {}: {}", file.string(), error.message(), mend);
}

Status fill(TlsContext& tls, const std::filesystem::path& certificate, const std::filesystem::path& key) {
  FURLONG_TRY(const std::string chain, system_files().read(certificate, most_pem_bytes));
  FURLONG_TRY(const std::string secret, system_files().read(key, most_pem_bytes));
  ssl::context& context = tls.context;
  error_code error;
  context.set_options(ssl::context::default_workarounds | ssl::context::no_compression, error);
  SSL_CTX* const raw = context.native_handle();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);  // tickets do, and cost no memory here
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);          // idle connections keep none
  // Without one OpenSSL would ask at the terminal.
  const auto encrypted = std::make_shared<bool>(false);
  context.set_password_callback(
      [encrypted](std::size_t, ssl::context::password_purpose) {
        *encrypted = true;
        return std::string();
      },
      error);
  context.use_certificate_chain(boost::asio::buffer(chain), error);
  if (error)
    return refused(certificate, error,
                   "it must be the certificate in PEM, with those of its issuers after it "
                   "('-----BEGIN CERTIFICATE-----')");
  context.use_private_key(boost::asio::buffer(secret), ssl::context::pem, error);
  if (*encrypted)
    return refused(key, error,
                   "the key is encrypted: write it without a passphrase, 'openssl pkey -in OLD -out NEW'");
  if (error && ERR_GET_REASON(static_cast<unsigned long>(error.value())) == X509_R_KEY_VALUES_MISMATCH)
    return refused(key, error, "the key is not that of " + certificate.string());
  if (error) return refused(key, error, "it must be the private key in PEM ('-----BEGIN PRIVATE KEY-----')");
  if (SSL_CTX_check_private_key(raw) != 1) {
    ERR_clear_error();
    return fail(Code::invalid, "{}: the key is not that of {}", key.string(), certificate.string());
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<TlsContext>> load_tls(const std::filesystem::path& certificate,
                                             const std::filesystem::path& key) {
  try {
    auto tls = std::make_shared<TlsContext>();
    FURLONG_CHECK_DOING(fill(*tls, certificate, key), "TLS");
    return tls;
  } catch (const std::exception& error) {
    return fail(Code::internal, "OpenSSL: {}", error.what());
  }
}

Result<std::unique_ptr<TlsCertificate>> TlsCertificate::open(std::filesystem::path certificate,
                                                             std::filesystem::path key) {
  std::unique_ptr<TlsCertificate> out(new TlsCertificate);
  out->certificate_ = std::move(certificate);
  out->key_ = std::move(key);
  out->seen_ = out->times();
  FURLONG_TRY(out->context_, load_tls(out->certificate_, out->key_));
  return out;
}

std::shared_ptr<TlsContext> TlsCertificate::current() const {
  const std::lock_guard lock(mutex_);
  return context_;
}

TlsCertificate::Times TlsCertificate::times() const {
  std::error_code ignored;  // an absent file is an old one
  Times out;
  out.first = std::filesystem::last_write_time(certificate_, ignored);
  out.second = std::filesystem::last_write_time(key_, ignored);
  return out;
}

void TlsCertificate::refresh() {
  const Times now = times();
  if (now == seen_) return;
  auto fresh = load_tls(certificate_, key_);
  // The key may be a moment behind the certificate: what does not fit is said at the second look.
  if (!fresh && now != unfit_) {
    unfit_ = now;
    return;
  }
  seen_ = now;
  if (!fresh) {
    log_warning("hub: the changed certificate is not taken, the old one stays: {}", fresh.error().text());
    return;
  }
  log_info("hub: took the changed certificate {}", certificate_.string());
  const std::lock_guard lock(mutex_);
  context_ = std::move(*fresh);
}

}  // namespace furlong::fleet
