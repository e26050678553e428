/* wrap - calls with a point before and behind them, at which a test may let the caller die.
 *
 * Contract: the includer has a function point(), and links with -Wl,--wrap=NAME. `params` are the
 * parameters of the call in brackets, `args` their names.
 */
#ifndef TESTS_RIG_WRAP_H
#define TESTS_RIG_WRAP_H

#define WRAP_VOID(name, params, args) \
	void __real_##name params; \
	void __wrap_##name params; \
	void __wrap_##name params \
	{ \
		point(); \
		__real_##name args; \
		point(); \
	}

#define WRAP(type, name, params, args) \
	type __real_##name params; \
	type __wrap_##name params; \
	type __wrap_##name params \
	{ \
		type rc; \
\
		point(); \
		rc = __real_##name args; \
		point(); \
		return rc; \
	}

#endif
