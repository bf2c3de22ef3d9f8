// MediaJobs
