/* A table for people: text in columns as wide as what is in them, or in Markdown. */
#ifndef TOOLS_COLUMNS_H
#define TOOLS_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct columns {
    int width;    /* columns */
    int n;        /* cells so far */
    int capacity;
    char **cells; /* row by row; the first row is the head */
    bool failed;  /* no memory */
} columns;

/* Adds a cell; a row is full after `width` of them. An empty text shows as "-". The text is copied. */
void columns_add(columns *c, const char *text);
__attribute__((format(printf, 2, 3))) void columns_format(columns *c, const char *format, ...);

/* Prints all rows to stdout and frees them. False: there was no memory for a cell. */
bool columns_print(columns *c, bool markdown);

/* "7.8 GiB" */
const char *columns_bytes(double bytes, char out[16]);

#endif
