"""Equations -> programs: traced scalars, scheduling, verification."""
