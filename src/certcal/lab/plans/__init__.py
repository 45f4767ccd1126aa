"""Measurements that serve one published table or figure each; they may change with it."""
