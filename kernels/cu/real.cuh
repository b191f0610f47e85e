// The type of a field's elements, which the option REAL says.
#pragma once

#ifndef REAL
#define REAL double
#endif
