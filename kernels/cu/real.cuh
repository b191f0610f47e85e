// The type of the elements of a field, by option REAL.
#pragma once

#ifndef REAL
#define REAL double
#endif
