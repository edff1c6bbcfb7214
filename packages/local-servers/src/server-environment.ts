/** All that a local server sees of the environment: nothing of ours leaks into it, and its messages are in English. */
export const SERVER_ENVIRONMENT = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/homebrew/bin",
  LC_ALL: "C",
  TZ: "UTC",
} as const;
