/* The functions of f64 that the kernel compiler brings along for languages without them: against libm's of long double,
 * over all exponents and where they are hard, within 2 ulp; specials, signed zeros, subnormal numbers; all of pow.
 */
#include "../plugin-sdk/kernel/poly64.h"

#include <check.h>
#include <float.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

enum { SAMPLES = 200000 };

static uint64_t state = 88172645463325252u; /* xorshift64* */

static uint64_t any_bits(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state * 0x2545f4914f6cdd1du;
}

static double between(double low, double high) { return low + (high - low) * (double)(any_bits() >> 11) * 0x1p-53; }

/* Of either sign, with an exponent of that range; all are as likely. */
static double with_exponent(int low, int high) {
    int e = low + (int)(any_bits() % (uint64_t)(high - low + 1));
    return ldexp(between(1, 2), e) * (any_bits() & 1 ? 1 : -1);
}

static double of_all(void) { return with_exponent(-1074, 1023); }
static double subnormal(void) { return ldexp(between(0, 1), -1022); }

static bool same(double a, double b) { return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b); }

/* The distance in units of the last place that a double like `want` has. Results next to the largest or the least
 * number may be on either side of that. */
static double ulps(double y, long double want) {
    if (isnan(want) || isnan(y)) return isnan(want) && isnan(y) ? 0 : INFINITY;
    if (!signbit(want) != !signbit(y)) return INFINITY;
    if (isinf(y)) return fabsl(want) >= (long double)DBL_MAX ? 0 : INFINITY;
    if (isinf(want)) return fabs(y) >= DBL_MAX * (1 - DBL_EPSILON) ? 1 : INFINITY;
    int e = DBL_MIN_EXP;
    if (want != 0) (void)frexpl(want, &e);
    if (e < DBL_MIN_EXP) e = DBL_MIN_EXP;
    return (double)(fabsl((long double)y - want) / ldexpl(1, e - DBL_MANT_DIG));
}

/* ---- of one number ----------------------------------------------------------------------------------------------- */

static long double logistic(long double x) { return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)); }

typedef struct function {
    const char *name;
    double (*f)(double);
    long double (*truth)(long double);
    double hard[2]; /* between which most is to be seen */
    double widest;  /* the largest |x| that the function takes */
    double limit;   /* ulp */
} function;

static const function functions[] = {
    {"exp", fnx_poly64_exp, expl, {-746, 710}, INFINITY, 1},
    {"log", fnx_poly64_log, logl, {0.5, 2}, INFINITY, 1},
    {"tanh", fnx_poly64_tanh, tanhl, {-1, 1}, INFINITY, 2},
    {"sigmoid", fnx_poly64_sigmoid, logistic, {-40, 40}, INFINITY, 2},
    {"erf", fnx_poly64_erf, erfl, {-6, 6}, INFINITY, 2},
    {"sin", fnx_poly64_sin, sinl, {-0.79, 0.79}, 0.79, 1},
    {"cos", fnx_poly64_cos, cosl, {-0.79, 0.79}, 0.79, 1},
};

static void check_at(const function *f, double x) {
    double y = f->f(x), distance;
    if (fabs(x) > f->widest) return;
    distance = ulps(y, f->truth(x));
    if (!(distance <= f->limit)) ck_abort_msg("%s(%a) = %a, which is off by %g ulp", f->name, x, y, distance);
}

START_TEST(functions_of_one_number_are_near_their_values) {
    const function *f = &functions[_i];
    for (int i = 0; i < SAMPLES; i++) {
        check_at(f, of_all());
        check_at(f, with_exponent(-60, 10));
        check_at(f, between(f->hard[0], f->hard[1]));
    }
    for (int i = 0; i < SAMPLES / 10; i++) check_at(f, subnormal());
}
END_TEST

START_TEST(exp_has_subnormal_results) {
    for (int i = 0; i < SAMPLES; i++) check_at(&functions[0], between(-746, -708));
    ck_assert(fnx_poly64_exp(-745) == 0x1p-1074);
    ck_assert(fnx_poly64_exp(-745.2) == 0);
    ck_assert(isinf(fnx_poly64_exp(709.79)));
    ck_assert(isfinite(fnx_poly64_exp(709.78)));
}
END_TEST

START_TEST(log_is_near_its_values_next_to_one) {
    for (int i = 0; i < SAMPLES; i++) check_at(&functions[1], 1 + with_exponent(-53, -2));
}
END_TEST

START_TEST(special_arguments_give_what_C_gives) {
    static const struct {
        double (*f)(double);
        double x, y;
    } cases[] = {
        {fnx_poly64_exp, 0, 1},
        {fnx_poly64_exp, -0.0, 1},
        {fnx_poly64_exp, INFINITY, INFINITY},
        {fnx_poly64_exp, -INFINITY, 0},
        {fnx_poly64_exp, DBL_MAX, INFINITY},
        {fnx_poly64_exp, -DBL_MAX, 0},
        {fnx_poly64_exp, NAN, NAN},
        {fnx_poly64_log, 0, -INFINITY},
        {fnx_poly64_log, -0.0, -INFINITY},
        {fnx_poly64_log, 1, 0},
        {fnx_poly64_log, -1, NAN},
        {fnx_poly64_log, -0x1p-1074, NAN},
        {fnx_poly64_log, INFINITY, INFINITY},
        {fnx_poly64_log, -INFINITY, NAN},
        {fnx_poly64_log, NAN, NAN},
        {fnx_poly64_tanh, 0, 0},
        {fnx_poly64_tanh, -0.0, -0.0},
        {fnx_poly64_tanh, INFINITY, 1},
        {fnx_poly64_tanh, -INFINITY, -1},
        {fnx_poly64_tanh, NAN, NAN},
        {fnx_poly64_sigmoid, 0, 0.5},
        {fnx_poly64_sigmoid, -0.0, 0.5},
        {fnx_poly64_sigmoid, INFINITY, 1},
        {fnx_poly64_sigmoid, -INFINITY, 0},
        {fnx_poly64_sigmoid, -DBL_MAX, 0},
        {fnx_poly64_sigmoid, NAN, NAN},
        {fnx_poly64_erf, 0, 0},
        {fnx_poly64_erf, -0.0, -0.0},
        {fnx_poly64_erf, INFINITY, 1},
        {fnx_poly64_erf, -INFINITY, -1},
        {fnx_poly64_erf, NAN, NAN},
        {fnx_poly64_sin, 0, 0},
        {fnx_poly64_sin, -0.0, -0.0},
        {fnx_poly64_sin, NAN, NAN},
        {fnx_poly64_cos, 0, 1},
        {fnx_poly64_cos, -0.0, 1},
        {fnx_poly64_cos, NAN, NAN},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        double y = cases[i].f(cases[i].x);
        ck_assert_msg(same(y, cases[i].y), "case %zu: f(%a) is %a, not %a", i, cases[i].x, y, cases[i].y);
    }
}
END_TEST

/* ---- pow --------------------------------------------------------------------------------------------------------- */

static void check_pow(double x, double y) {
    double z = fnx_poly64_pow(x, y), distance = ulps(z, powl(x, y));
    if (!(distance <= 1)) ck_abort_msg("pow(%a, %a) = %a, which is off by %g ulp", x, y, z, distance);
}

static void check_pow_f32(float x, float y) {
    float z = fnx_poly_pow(x, y);
    double want = pow((double)x, (double)y);
    int e = FLT_MIN_EXP;
    if (isnan(want) || fabs(want) >= (double)FLT_MAX || want == 0) {
        if (!same((double)z, (double)(float)want))
            ck_abort_msg("pow(%a, %a) = %a, not %a", (double)x, (double)y, (double)z, want);
        return;
    }
    (void)frexp(want, &e);
    if (e < FLT_MIN_EXP) e = FLT_MIN_EXP;
    double distance = fabs((double)z - want) / ldexp(1, e - FLT_MANT_DIG);
    if (!(distance <= 0.501))
        ck_abort_msg("pow(%a, %a) = %a, off by %g ulp of f32", (double)x, (double)y, (double)z, distance);
}

START_TEST(pow_is_near_its_values) {
    for (int i = 0; i < SAMPLES; i++) {
        check_pow(of_all(), of_all());
        check_pow(fabs(of_all()), between(-1.1, 1.1));
        check_pow(fabs(with_exponent(-30, 30)), between(-35, 35)); /* up to the ends of the range */
        check_pow(1 + with_exponent(-52, -2), with_exponent(0, 62));
        check_pow(with_exponent(-5, 5), floor(between(-200, 200)));
        check_pow(subnormal(), between(-1, 1));
    }
}
END_TEST

START_TEST(pow_has_subnormal_results) {
    for (int i = 0; i < SAMPLES; i++) {
        double x = fabs(with_exponent(-500, -2));
        check_pow(x, between(-1075, -1022) / log2(x));
    }
    ck_assert(fnx_poly64_pow(2, -1074) == 0x1p-1074);
    ck_assert(fnx_poly64_pow(0x1p-1074, 1) == 0x1p-1074);
    ck_assert(fnx_poly64_pow(2, -1076) == 0);
    ck_assert(fnx_poly64_pow(-2, -1077) == 0 && signbit(fnx_poly64_pow(-2, -1077)));
}
END_TEST

START_TEST(pow_of_f32_is_rounded_right) {
    for (int i = 0; i < SAMPLES; i++) {
        check_pow_f32((float)with_exponent(-149, 127), (float)with_exponent(-149, 127));
        check_pow_f32((float)fabs(with_exponent(-20, 20)), (float)between(-8, 8));
        check_pow_f32((float)(1 + with_exponent(-23, -2)), (float)with_exponent(0, 30));
        check_pow_f32((float)with_exponent(-5, 5), (float)floor(between(-30, 30)));
    }
    ck_assert(fnx_poly_pow(2, -149) == 0x1p-149f);
    ck_assert(fnx_poly_pow(0x1p-149f, 1) == 0x1p-149f);
}
END_TEST

/* Annex F.10.4.4 of C17, as libm has it, over the square of all that is special. */
START_TEST(pow_has_all_special_cases_of_C) {
    static const double at[] = /* also the last numbers that are not whole and odd */
        {0.0, 0x1p-1074,  0x1p-1022,          0.5,        1 - 0x1p-53, 1,          1 + 0x1p-52, 1.5,     2,        2.5,
         3,   0x1p52 + 1, 4503599627370495.5, 0x1p53 - 1, 0x1p53,      0x1p53 + 2, 0x1p65,      DBL_MAX, INFINITY, NAN};
    for (size_t i = 0; i < 2 * COUNT(at); i++)
        for (size_t j = 0; j < 2 * COUNT(at); j++) {
            double x = i % 2 ? -at[i / 2] : at[i / 2], y = j % 2 ? -at[j / 2] : at[j / 2];
            double z = fnx_poly64_pow(x, y), want = pow(x, y);
            ck_assert_msg(same(z, want) || (isfinite(want) && want != 0 && signbit(want) == signbit(z) &&
                                            fabs(z - want) <= fabs(want) * DBL_EPSILON),
                          "pow(%a, %a) is %a, not %a", x, y, z, want);
            check_pow_f32((float)x, (float)y);
        }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("poly64");
    TCase *functions_case = tcase_create("functions"), *pow_case = tcase_create("pow");
    tcase_set_timeout(functions_case, 300);
    tcase_add_loop_test(functions_case, functions_of_one_number_are_near_their_values, 0, (int)COUNT(functions));
    tcase_add_test(functions_case, exp_has_subnormal_results);
    tcase_add_test(functions_case, log_is_near_its_values_next_to_one);
    tcase_add_test(functions_case, special_arguments_give_what_C_gives);
    suite_add_tcase(suite, functions_case);
    tcase_set_timeout(pow_case, 300);
    tcase_add_test(pow_case, pow_is_near_its_values);
    tcase_add_test(pow_case, pow_has_subnormal_results);
    tcase_add_test(pow_case, pow_of_f32_is_rounded_right);
    tcase_add_test(pow_case, pow_has_all_special_cases_of_C);
    suite_add_tcase(suite, pow_case);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
