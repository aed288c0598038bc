// Asio and Beast, compiled here once: every other file of this folder sees declarations only, which halves
// its time.
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/src.hpp>
