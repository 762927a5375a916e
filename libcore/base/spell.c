/* Edit distance with adjacent transpositions (optimal string alignment). */
#include "base/spell.h"

#include <string.h>

enum { LONGEST = 63 };

static int smaller(int a, int b) { return a < b ? a : b; }

static int distance(const char *a, const char *b) {
    int n = (int)strnlen(a, LONGEST), m = (int)strnlen(b, LONGEST);
    int row[3][LONGEST + 2];
    for (int j = 0; j <= m; j++) row[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = row[i % 3], *up = row[(i + 2) % 3], *two_up = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            now[j] = smaller(smaller(up[j] + 1, now[j - 1] + 1), up[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = smaller(now[j], two_up[j - 2] + 1);
        }
    }
    return row[n % 3][m];
}

const char *fnx_spell_closest(const char *text, const char *const *names, int n) {
    const char *best = NULL;
    int least = (int)strlen(text) / 3 + 1;
    for (int i = 0; i < n; i++) {
        int d = distance(text, names[i]);
        if (d <= least && (!best || d < least)) least = d, best = names[i];
    }
    return best;
}
