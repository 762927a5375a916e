/* "Did you mean": the closest of some names. */
#ifndef BASE_SPELL_H
#define BASE_SPELL_H

/* The name with the fewest edits to `text`, or NULL if none is close. */
const char *fnx_spell_closest(const char *text, const char *const *names, int n);

#endif
