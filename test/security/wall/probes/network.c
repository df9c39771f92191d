/* Ways out that are none: addresses, other protocols, and what would change the rules that catch programs. */
#include "probe.h"
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>

/* A connection that is made at all must be taken back when it is used. */
static void try_tcp(const char *name, const char *address, int port) {
  int six = strchr(address, ':') != NULL;
  int fd = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
  struct timeval patience = { .tv_sec = 20 };
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  struct sockaddr_in to4 = { .sin_family = AF_INET, .sin_port = htons(port) };
  struct sockaddr_in6 to6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
  inet_pton(AF_INET, address, &to4.sin_addr);
  inet_pton(AF_INET6, address, &to6.sin6_addr);
  int result = six ? connect(fd, (struct sockaddr *)&to6, sizeof to6) : connect(fd, (struct sockaddr *)&to4, sizeof to4);
  char byte;
  if (result == 0) result = recv(fd, &byte, 1, 0) == 0 ? 0 : -1;
  tried(name, result);
  close(fd);
}

static void try_udp(const char *name, const char *address, int port) {
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  struct timeval patience = { .tv_sec = 20 };
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
  inet_pton(AF_INET, address, &to.sin_addr);
  char byte = 0;
  int result = connect(fd, (struct sockaddr *)&to, sizeof to);
  if (result == 0) result = send(fd, &byte, 1, 0) == 1 ? 0 : -1;
  if (result == 0) result = recv(fd, &byte, 1, 0) >= 0 ? 0 : -1;
  tried(name, result);
  close(fd);
}

/* What the kernel answers to a change of routes. */
static void try_route(void) {
  int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  if (fd < 0) {
    tried("network.route", fd);
    return;
  }
  struct { struct nlmsghdr header; struct rtmsg route; } request = {
    .header = { .nlmsg_len = sizeof request, .nlmsg_type = RTM_DELROUTE, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
    .route = { .rtm_family = AF_INET, .rtm_table = RT_TABLE_LOCAL, .rtm_type = RTN_LOCAL, .rtm_scope = RT_SCOPE_HOST },
  };
  char answer[1024];
  if (send(fd, &request, sizeof request, 0) < 0 || recv(fd, answer, sizeof answer, 0) < (long)sizeof(struct nlmsghdr)) {
    tried("network.route", -1);
  } else {
    int error = ((struct nlmsgerr *)NLMSG_DATA((struct nlmsghdr *)answer))->error;
    if (error == 0) outcome("network.route", "allowed");
    else outcome_errno("network.route", -error);
  }
  close(fd);
}

static void try_bind(const char *name, int kind, int port) {
  int fd = socket(AF_INET, kind, 0), on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  tried(name, bind(fd, (struct sockaddr *)&at, sizeof at));
  close(fd);
}

static void try_options(void) {
  int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  char info[84] = "nat";
  socklen_t length = sizeof info;
  tried("network.transparent_socket", setsockopt(fd, SOL_IP, 19 /* IP_TRANSPARENT */, &on, sizeof on));
  tried("network.mark", setsockopt(fd, SOL_SOCKET, SO_MARK, &on, sizeof on));
  tried("network.iptables", getsockopt(fd, SOL_IP, 64 /* IPT_SO_GET_INFO */, info, &length));
  close(fd);
}

int main(void) {
  try_tcp("network.public", "93.184.216.34", 80);
  try_tcp("network.odd_port", "93.184.216.34", 31337);
  try_tcp("network.private", "10.0.0.1", 443);
  try_tcp("network.metadata", "169.254.169.254", 80);
  try_tcp("network.synthetic", "198.19.200.200", 80);
  try_tcp("network.mapped", "::ffff:93.184.216.34", 80);
  try_tcp("network.own_address", "198.18.0.1", 9);
  try_tcp("network.loopback", "127.0.0.1", 9);
  try_tcp("network.ipv6", "2001:db8::1", 80);
  try_tcp("network.ipv6_metadata", "fd00:ec2::254", 80);
  try_tcp("network.nat64", "64:ff9b::8.8.8.8", 80);
  try_udp("network.udp_dns", "8.8.8.8", 53);
  try_udp("network.udp_quic", "93.184.216.34", 443);
  try_udp("network.udp_metadata", "169.254.169.254", 123);
  opened("network.netfilter", socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER));
  try_route();
  try_bind("network.bind_names_tcp", SOCK_STREAM, 53);
  try_bind("network.bind_names_udp", SOCK_DGRAM, 53);
  try_options();
  return 0;
}
