"""Program -> callable. A backend renders, compiles and runs; it holds no mechanics."""
