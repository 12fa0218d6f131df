/* The floor of a load generator: one epoll loop, edge-triggered, one receive an event, the send inline.
 *
 *     pingpong ANSWER_BYTES REQUEST_HEX FD:STATEMENT...
 *
 * Each descriptor is a connected socket on which a statement is prepared; the request goes out with its number
 * (bytes 5 to 8) again and again, as soon as so many bytes came back. Prints the number of answers each second. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

enum { EVENTS = 512, REQUEST_MAX = 256 };

struct line {
    int fd;
    long missing;
    unsigned char request[REQUEST_MAX];
};

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int main(int argc, char **argv) {
    static char scratch[256 << 10];
    if (argc < 4) return 2;
    long answer = atol(argv[1]);
    size_t length = strlen(argv[2]) / 2;
    int count = argc - 3, loop = epoll_create1(0);
    struct line *lines = calloc((size_t)count, sizeof *lines);
    if (!lines || length > REQUEST_MAX || loop < 0) return 2;
    for (int i = 0; i < count; i++) {
        struct line *one = &lines[i];
        unsigned statement;
        if (sscanf(argv[3 + i], "%d:%u", &one->fd, &statement) != 2) return 2;
        for (size_t at = 0; at < length; at++) sscanf(argv[2] + 2 * at, "%2hhx", &one->request[at]);
        for (int b = 0; b < 4; b++) one->request[5 + b] = (unsigned char)(statement >> (8 * b));
        fcntl(one->fd, F_SETFL, fcntl(one->fd, F_GETFL) | O_NONBLOCK);
        struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = one};
        if (epoll_ctl(loop, EPOLL_CTL_ADD, one->fd, &event)) return 1;
        one->missing = answer;
        if (send(one->fd, one->request, length, MSG_NOSIGNAL) != (ssize_t)length) return 1;
    }
    uint64_t told = now_ns(), answers = 0;
    for (;;) {
        struct epoll_event events[EVENTS];
        int n = epoll_wait(loop, events, EVENTS, 100);
        for (int i = 0; i < n; i++) {
            struct line *one = events[i].data.ptr;
            ssize_t got = recv(one->fd, scratch, sizeof scratch, 0);
            if (got < 0 && errno == EAGAIN) continue;
            if (got <= 0) return 1;
            if ((one->missing -= got) > 0) continue;
            one->missing = answer;
            answers++;
            if (send(one->fd, one->request, length, MSG_NOSIGNAL) != (ssize_t)length) return 1;
        }
        uint64_t now = now_ns();
        if (now - told >= 1000000000u) {
            printf("%.1f\n", (double)answers * 1e9 / (double)(now - told));
            fflush(stdout);
            told = now;
            answers = 0;
        }
    }
}
