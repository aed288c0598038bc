#pragma once
// Transports over sockets of Asio. Only this folder includes it.

#include <memory>

#include "furlong/fleet/hub/internal/beast/asio.h"
#include "furlong/fleet/hub/internal/http/transport.h"

namespace furlong::fleet {

class TlsContext;

std::unique_ptr<Transport> make_plain_transport(Socket socket);
/// `context` is kept as long as the transport.
std::unique_ptr<Transport> make_tls_transport(Socket socket, std::shared_ptr<TlsContext> context);

}  // namespace furlong::fleet
